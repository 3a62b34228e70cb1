/**
 * Networks on this machine, one namespace each. Nothing is remembered that the kernel does not hold: before anything is done the
 * driver looks, and does only what differs, so a service that was killed anywhere goes on where it was and a finished network is
 * not touched. The firewall and the source lock are loaded before a port goes up; the mark that says which generation is in force
 * comes last.
 */
import { chmodSync, mkdirSync, readdirSync } from "node:fs";
import { createKeyedQueue } from "../../../base/serialqueue.ts";
import type { Exec } from "../../exec.ts";
import type { NetworkSpec, Router } from "../interface.ts";
import { namespaceOf, networkOf, uplinkOf, wireguardOf } from "../model/name.ts";
import type { Limits } from "../nft/connectionlimits.ts";
import { digestOf, environment } from "../nft/firewall.ts";
import { createHostGuard } from "../nft/hostguard.ts";
import { natTable } from "../nft/nat.ts";
import {
  type Active,
  activeOf,
  generationLine,
  type Kind,
  kinds,
  listingOf,
  removalText,
  staleOf,
  swap,
} from "../nft/swap.ts";
import { createTranslation } from "../nft/translation.ts";
import type { Capabilities } from "./detect.ts";
import { createDhcp } from "./dhcp.ts";
import { lines, runBatch, unlessMissing } from "./ipbatch.ts";
import {
  aliasLine,
  arriving,
  birthLines,
  earlyArguments,
  finishLines,
  folderOf,
  forwardingArguments,
  leavingLines,
  machineLines,
  machineSettings,
  moveLines,
  portLines,
  returnLines,
  type Site,
  settingArguments,
  settings,
  spaceLines,
} from "./netns.ts";
import { createObserver } from "./observer.ts";
import { createPair, type Pair } from "./pair.ts";
import { shapeLines } from "./shape.ts";
import {
  type Found,
  type Link,
  lookLines,
  markText,
  readLinks,
  readMark,
  readRoutes,
  readSettings,
  readSnapshot,
  tally,
} from "./snapshot.ts";
import { renderTexts, type Texts } from "./texts.ts";
import type { TunnelEngine } from "./tunnels.ts";

export interface LinuxOptions extends Site {
  readonly exec: Exec;
  /** Short, on a file system that a reboot empties; made with mode 711. */
  readonly runFolder: string;
  readonly capabilities: Capabilities;
  readonly tunnels: readonly TunnelEngine[];
  /** Addresses and blocks of the host that guests may reach. */
  readonly opened: readonly string[];
  readonly limits?: Limits;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

interface Machine {
  readonly links: ReadonlyMap<string, Link>;
  readonly routes: ReadonlySet<string>;
  /** Listing of the network's own table, "" without. */
  readonly nat: string;
  readonly settings: ReadonlyMap<string, string>;
}

interface Known {
  readonly image: NetworkSpec;
  readonly edge: Active | null;
  /** All tables as they were listed at the last look, since when nobody had a reason to change them. */
  readonly rules?: string;
}

export function createLinux(options: LinuxOptions): Router {
  const { exec, tag, machine, runFolder, capabilities, tunnels } = options;
  mkdirSync(runFolder, { recursive: true });
  // Programs that are not root find their own files below, and nobody sees whose there are.
  chmodSync(runFolder, 0o711);
  const spaceOf = (network: number) => namespaceOf(tag, network);
  const dhcp = createDhcp(exec, (network) => folderOf(runFolder, network));
  const onMachine = machine === null ? [] : ["-n", machine];
  const enter = (namespace: string | null) => (namespace === null ? [] : ["nsenter", `--net=/run/netns/${namespace}`]);

  const ip = (namespace: string | null, batch: readonly string[]) => runBatch(exec, namespace, batch);
  async function nft(namespace: string | null, text: string): Promise<void> {
    const options = { stdin: text, timeout: 60_000, environment };
    if (text !== "") await exec.run([...enter(namespace), "nft", "-f", "-"], options);
  }
  const hostGuard = createHostGuard({ exec, tag, enter: enter(machine), opened: options.opened });
  const nftPair = (network: number) => createPair(exec, [...enter(spaceOf(network)), "nft", "-f", "-"], environment);
  const spaces = (): Set<string> => {
    try {
      return new Set(readdirSync("/run/netns"));
    } catch {
      return new Set();
    }
  };

  async function look(image: NetworkSpec): Promise<Found | null> {
    const batch = lookLines(spaceOf(image.id), true, Object.keys(settings(image)));
    // A namespace that vanished meanwhile says nothing; its output is missing, which is the answer.
    const output = await exec.run(["ip", "-force", "-batch", "-"], {
      stdin: lines(batch),
      codes: [0, 1],
      timeout: 60_000,
    });
    const [found] = readSnapshot(output);
    if (found !== undefined) return found;
    // A name without a namespace is what a killed `netns add` leaves. A namespace that is there and was not seen is not to be made anew.
    const isThere = await exec.run(["ip", "-n", spaceOf(image.id), "-o", "link", "show", "lo"]).then(
      () => true,
      () => false,
    );
    if (isThere) throw new Error(`${spaceOf(image.id)} could not be looked at`);
    return null;
  }

  async function lookMachine(image: NetworkSpec, fresh: boolean): Promise<Machine> {
    const links = () => exec.run(["ip", ...onMachine, "-j", "-s", "-d", "addr"]).then(readLinks);
    if (image.edgeAddress === null) return { links: await links(), routes: new Set(), nat: "", settings: new Map() };
    const routes = (family: string) => exec.run(["ip", ...onMachine, "-j", family, "route"]).then(readRoutes);
    const table = ["nft", "-s", "list", "table", "inet", natTable(tag, image.id)];
    const [there, four, six, nat, values] = await Promise.all([
      links(),
      fresh ? [] : routes("-4"),
      fresh || image.v6 === null ? [] : routes("-6"),
      exec.run([...enter(machine), ...table], { codes: [0, 1] }),
      exec.run([...enter(machine), "sysctl", "-e", ...machineSettings]),
    ]);
    return { links: there, routes: new Set([...four, ...six]), nat, settings: readSettings(values) };
  }

  /** The tables that are not as the texts say. `altered`: what is in them is not what was there at the last look. */
  function stale(texts: Texts, found: Found | null, altered: boolean): readonly Kind[] {
    return kinds.filter((kind) => {
      const active = found === null ? null : activeOf(found, kind);
      if (found === null || altered || active === null || active.digest !== digestOf(texts[kind])) return true;
      // The wish is the one that was loaded, but somebody may have changed a rule since.
      return tally(listingOf(found, active.name)) !== tally(texts[kind]);
    });
  }

  /** Brings the tables into force, all in one step, and then removes those that no packet asks any more. */
  async function load(network: number, texts: Texts, found: Found | null, replaced: readonly Kind[]) {
    const space = spaceOf(network);
    const active = (kind: Kind) => (found === null ? null : activeOf(found, kind));
    const idle = (kind: Kind) => (found === null ? [] : staleOf(found, kind));
    const swaps = replaced.map((kind) => swap(kind, texts[kind], active(kind), idle(kind)));
    const tidy = kinds.filter((kind) => !replaced.includes(kind)).map((kind) => removalText(kind, idle(kind)));
    await nft(space, [...swaps.map(({ first }) => first), ...tidy].join(""));
    await nft(space, swaps.map(({ second }) => second).join(""));
    buryLater(network, swaps.map(({ past }) => past).join(""));
    return swaps[replaced.indexOf("edge")]?.active ?? active("edge");
  }

  /** Nobody waits for it, but the next change of the network does. Whatever it leaves, the long way finds. */
  const buryLater = (network: number, past: string): void => {
    if (past !== "") void inTurn(network, () => nft(spaceOf(network), past).catch(() => known.delete(network)));
  };

  const translation = createTranslation({ exec, tag, machine, load: (text) => nft(machine, text) });
  const addressesOf = (here: Machine): string[] =>
    [...here.links.values()].flatMap(({ addresses }) => addresses.map((address) => address.split("/", 1)[0] ?? ""));

  async function set(namespace: string | null, settings: readonly string[]): Promise<void> {
    if (settings.length > 0) await exec.run([...enter(namespace), "sysctl", "-eqw", ...settings]);
  }

  /** What this process has applied last, if it differs from the image in nothing but the rules. */
  function beforeRules(image: NetworkSpec): Known | null {
    const before = known.get(image.id);
    const rest = (one: NetworkSpec) => JSON.stringify({ ...one, generation: 0, firewall: null });
    const isLater = before !== undefined && before.image.generation < image.generation;
    return isLater && rest(before.image) === rest(image) ? before : null;
  }

  /** The short way for the most frequent change. False when it did not work; then the long way finds out what is to be done. */
  async function replaceRules(image: NetworkSpec, texts: Texts, { edge }: Known, pair: Pair): Promise<boolean> {
    const same = edge?.digest === digestOf(texts.edge);
    const next = swap("edge", texts.edge, edge, []);
    try {
      const [links] = await Promise.all([
        exec.run(["ip", ...onMachine, "-j", "link"]).then(readLinks),
        same ? null : pair.first(next.first),
      ]);
      if (arriving(image, links).length > 0) return false;
      if (!same) await pair.second(next.second + generationLine(next.active, image.generation));
      else await ip(spaceOf(image.id), [aliasLine(markText(image.id, image.generation))]);
      known.set(image.id, { image, edge: same ? edge : next.active });
      if (!same) buryLater(image.id, next.past);
      return true;
    } catch {
      return false;
    }
  }

  async function ensure(
    image: NetworkSpec,
    texts: Texts,
    found: Found | null,
    tell: (part: string) => void = () => {},
  ): Promise<void> {
    const space = spaceOf(image.id);
    const device = wireguardOf(tag, image.id);
    if (found === null) {
      // A namespace whose name was taken away lives on with all that runs in it, and would answer in the new one's place.
      await Promise.all(tunnels.map((engine) => engine.remove({ namespace: space, device })));
      await dhcp.stop(image.id);
    }
    const [here, isOpened] = await Promise.all([
      lookMachine(image, found === null),
      image.edgeAddress !== null && hostGuard.ensure(image),
    ]);
    const uplink = uplinkOf(tag, image.id);
    const coming = arriving(image, here.links);
    const isAgain = found !== null && coming.length === 0 && readMark(found).generation === image.generation;
    /** What is to be done to a part; a generation that was in force before left nothing to do. */
    const due = <List extends { readonly length: number }>(part: string, list: List): List => {
      if (isAgain && list.length > 0) tell(part);
      return list;
    };

    if (isOpened) due("host guard", [uplink]);
    const joined = image.edgeAddress === null || (here.links.has(uplink) && found?.links.has("up0") === true);
    if (found === null || !joined) {
      due("uplink", [uplink]);
      if (here.links.has(uplink)) await ip(machine, [`link del ${uplink}`]).catch(unlessMissing);
      if (found === null || image.edgeAddress !== null) await ip(null, birthLines(image, options, found !== null));
    }
    const base =
      joined || found === null
        ? found
        : { ...found, links: new Map([...found.links].filter(([name]) => name !== "up0")), routes: new Set<string>() };
    if (found !== null) await ip(space, leavingLines(image, found, coming));
    const before = known.get(image.id);
    const altered = isAgain && before?.rules !== undefined && before.rules !== found.rules;
    const replaced = due("firewall", stale(texts, found, altered));
    if (found !== null) await set(space, due("settings", earlyArguments(image, found)));
    const [edge] = await Promise.all([
      load(image.id, texts, found, replaced),
      translation.ensure(image, here.nat, addressesOf(here), (text) => due("translation", text)),
      ip(space, due("bridge", spaceLines(image, base))),
    ]);
    await ip(machine, moveLines(image, options, coming));
    await Promise.all([
      ip(space, due("ports", portLines(image, base, coming))),
      set(space, due("settings", settingArguments(image, base))),
      set(machine, due("forwarding", forwardingArguments(image, here.settings, [...here.links.keys()]))),
      joined || image.edgeAddress === null
        ? ip(machine, due("routes", machineLines(image, options, here.links.get(uplink), here.routes)))
        : ip(machine, machineLines(image, options, undefined, null)),
    ]);
    const shape = capabilities.bandwidth ? shapeLines(image, base, new Set(coming.map(({ id }) => id))) : [];
    if (due("bandwidth", shape).length > 0)
      await exec.run([...enter(space), "tc", "-batch", "-"], { stdin: lines(shape) });
    if (capabilities.dhcp) await dhcp.ensure(image, space);
    if (image.edgeAddress !== null && image.v4.gateway !== null) {
      const { gateway, cidr } = image.v4;
      const ends = { namespace: space, device, address: image.edgeAddress, cidr, gateway };
      await Promise.all(tunnels.map((engine) => engine.apply(ends, image)));
    }
    await ip(space, finishLines(image, base, coming));
    known.set(image.id, { image, edge, ...(isAgain && replaced.length === 0 && { rules: found.rules }) });
  }

  async function erase(network: number): Promise<void> {
    const space = spaceOf(network);
    await Promise.all(tunnels.map((engine) => engine.remove({ namespace: space, device: wireguardOf(tag, network) })));
    await dhcp.stop(network);
    await ip(machine, [`link del ${uplinkOf(tag, network)}`]).catch(unlessMissing);
    await translation.remove(network);
    await hostGuard.release(network, () => observed().every((other) => other.network === network));
    if (!spaces().has(space)) return;
    // Whatever still runs in there would keep it alive without a name.
    const pids = await exec.run(["ip", "netns", "pids", space]).catch((error: unknown) => {
      unlessMissing(error);
      return "";
    });
    for (const pid of pids.split("\n").filter(Boolean)) {
      const child = exec.find(Number(pid));
      if (child !== null) exec.signal(child, "SIGKILL");
    }
    await ip(null, [`netns del ${space}`]).catch(unlessMissing);
  }

  /** Erases, but servers go on in their cards: those that were taken in wait on the machine for the next attempt. */
  async function undo(image: NetworkSpec): Promise<void> {
    const argv = ["ip", "-force", "-n", spaceOf(image.id), "-batch", "-"];
    await exec.run(argv, { stdin: lines(returnLines(image, options)), codes: [0, 1] });
    await erase(image.id);
  }

  /** What this process has applied. */
  const known = new Map<number, Known>();

  // One thing at a time per network: two writers of one namespace would not see each other's half-done work.
  const queue = createKeyedQueue();
  const inTurn = <Result>(network: number, work: () => Promise<Result>): Promise<Result> => queue.run([network], work);

  /** Resolves to the generation that is in force then. */
  async function applyWhole(image: NetworkSpec, texts: Texts, tell?: (part: string) => void): Promise<number> {
    const found = spaces().has(spaceOf(image.id)) ? await look(image) : null;
    const generation = found === null ? 0 : readMark(found).generation;
    if (generation > image.generation) return generation;
    try {
      await ensure(image, texts, found, tell);
    } catch (error) {
      known.delete(image.id);
      // What never worked leaves nothing; what worked goes on as it was.
      if (generation === 0) await undo(image).catch(() => {});
      throw error;
    }
    return image.generation;
  }

  const observed = () =>
    [...spaces()].flatMap((space) => {
      const network = networkOf(tag, space);
      return network === null ? [] : [{ network, space }];
    });
  const observer = createObserver({
    ...options,
    dhcpRuns: dhcp.isRunning,
    heldPorts: translation.heldOf,
    isGuarded: hostGuard.isWhole,
    networks: observed,
  });

  return {
    apply: (image, tell) =>
      inTurn(image.id, async () => {
        const before = beforeRules(image);
        const pair = before && nftPair(image.id);
        try {
          const texts = renderTexts(image, capabilities.kernelEsp, options.limits);
          const isDone = before !== null && pair !== null && (await replaceRules(image, texts, before, pair));
          const generation = isDone ? image.generation : await applyWhole(image, texts, tell);
          if (generation === image.generation) observer.know(image, digestOf(texts.edge));
          return generation;
        } finally {
          pair?.dismiss();
        }
      }),
    remove: (network) =>
      inTurn(network, async () => {
        known.delete(network);
        await erase(network);
        observer.forget(network);
      }),
    observe: (network) => observer.observe(network),
    sourceTo: translation.sourceTo,
    async greeting(network, address, port) {
      const image = known.get(network)?.image;
      if (image === undefined || image.edgeAddress === null) return null;
      const call = ["timeout", "1", "busybox", "nc", "-w", "1", address, String(port)];
      // It ends by itself when it has heard something, and is ended (124, 143) when nothing came.
      const said = await exec.run([...enter(spaceOf(network)), ...call], { codes: [0, 1, 124, 143] });
      return said.split(/\r?\n/, 1)[0] || null;
    },
    async close() {
      await queue.settle();
      for (const engine of tunnels) engine.close();
    },
  };
}
