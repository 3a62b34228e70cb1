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
  arrivingPorts,
  creationLines,
  earlyArguments,
  finishLines,
  folderOf,
  forwardingArguments,
  hostSettings,
  hostUplinkLines,
  leavingLines,
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
  countVerdicts,
  type Link,
  markText,
  type NamespaceState,
  readLinks,
  readMark,
  readRoutes,
  readSettings,
  readSnapshot,
  snapshotLines,
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

interface HostState {
  readonly links: ReadonlyMap<string, Link>;
  readonly routes: ReadonlySet<string>;
  /** Listing of the network's own table, "" without. */
  readonly nat: string;
  readonly settings: ReadonlyMap<string, string>;
}

interface Known {
  readonly spec: NetworkSpec;
  readonly edge: Active | null;
  /** All tables as they were listed at the last look, since when nobody had a reason to change them. */
  readonly rules?: string;
}

export function createLinux(options: LinuxOptions): Router {
  const { exec, tag, hostNamespace, runFolder, capabilities, tunnels } = options;
  mkdirSync(runFolder, { recursive: true });
  // Programs that are not root find their own files below, and nobody sees whose there are.
  chmodSync(runFolder, 0o711);
  const spaceOf = (network: number) => namespaceOf(tag, network);
  const dhcp = createDhcp(exec, (network) => folderOf(runFolder, network));
  const onHost = hostNamespace === null ? [] : ["-n", hostNamespace];
  const enter = (namespace: string | null) => (namespace === null ? [] : ["nsenter", `--net=/run/netns/${namespace}`]);

  const ip = (namespace: string | null, batch: readonly string[]) => runBatch(exec, namespace, batch);
  async function nft(namespace: string | null, text: string): Promise<void> {
    const options = { stdin: text, timeout: 60_000, environment };
    if (text !== "") await exec.run([...enter(namespace), "nft", "-f", "-"], options);
  }
  const hostGuard = createHostGuard({ exec, tag, enter: enter(hostNamespace), opened: options.opened });
  const nftPair = (network: number) => createPair(exec, [...enter(spaceOf(network)), "nft", "-f", "-"], environment);
  const spaces = (): Set<string> => {
    try {
      return new Set(readdirSync("/run/netns"));
    } catch {
      return new Set();
    }
  };

  async function look(spec: NetworkSpec): Promise<NamespaceState | null> {
    const batch = snapshotLines(spaceOf(spec.id), true, Object.keys(settings(spec)));
    // A namespace that vanished meanwhile says nothing; its output is missing, which is the answer.
    const output = await exec.run(["ip", "-force", "-batch", "-"], {
      stdin: lines(batch),
      codes: [0, 1],
      timeout: 60_000,
    });
    const [found] = readSnapshot(output);
    if (found !== undefined) return found;
    // A name without a namespace is what a killed `netns add` leaves. A namespace that is there and was not seen is not to be made anew.
    const isThere = await exec.run(["ip", "-n", spaceOf(spec.id), "-o", "link", "show", "lo"]).then(
      () => true,
      () => false,
    );
    if (isThere) throw new Error(`${spaceOf(spec.id)} could not be looked at`);
    return null;
  }

  async function readHost(spec: NetworkSpec, fresh: boolean): Promise<HostState> {
    const links = () => exec.run(["ip", ...onHost, "-j", "-s", "-d", "addr"]).then(readLinks);
    if (spec.edgeAddress === null) return { links: await links(), routes: new Set(), nat: "", settings: new Map() };
    const routes = (family: string) => exec.run(["ip", ...onHost, "-j", family, "route"]).then(readRoutes);
    const table = ["nft", "-s", "list", "table", "inet", natTable(tag, spec.id)];
    const [there, four, six, nat, values] = await Promise.all([
      links(),
      fresh ? [] : routes("-4"),
      fresh || spec.v6 === null ? [] : routes("-6"),
      exec.run([...enter(hostNamespace), ...table], { codes: [0, 1] }),
      exec.run([...enter(hostNamespace), "sysctl", "-e", ...hostSettings]),
    ]);
    return { links: there, routes: new Set([...four, ...six]), nat, settings: readSettings(values) };
  }

  /** The tables that are not as the texts say. `altered`: what is in them is not what was there at the last look. */
  function stale(texts: Texts, found: NamespaceState | null, altered: boolean): readonly Kind[] {
    return kinds.filter((kind) => {
      const active = found === null ? null : activeOf(found, kind);
      if (found === null || altered || active === null || active.digest !== digestOf(texts[kind])) return true;
      // The wish is the one that was loaded, but somebody may have changed a rule since.
      return countVerdicts(listingOf(found, active.name)) !== countVerdicts(texts[kind]);
    });
  }

  /** Brings the tables into force, all in one step, and then removes those that no packet asks any more. */
  async function load(network: number, texts: Texts, found: NamespaceState | null, replaced: readonly Kind[]) {
    const space = spaceOf(network);
    const active = (kind: Kind) => (found === null ? null : activeOf(found, kind));
    const idle = (kind: Kind) => (found === null ? [] : staleOf(found, kind));
    const swaps = replaced.map((kind) => swap(kind, texts[kind], active(kind), idle(kind)));
    const tidy = kinds.filter((kind) => !replaced.includes(kind)).map((kind) => removalText(kind, idle(kind)));
    await nft(space, [...swaps.map(({ first }) => first), ...tidy].join(""));
    await nft(space, swaps.map(({ second }) => second).join(""));
    removeLater(network, swaps.map(({ past }) => past).join(""));
    return swaps[replaced.indexOf("edge")]?.active ?? active("edge");
  }

  /** Nobody waits for it, but the next change of the network does. Whatever it leaves, the long way finds. */
  const removeLater = (network: number, past: string): void => {
    if (past !== "") void inTurn(network, () => nft(spaceOf(network), past).catch(() => known.delete(network)));
  };

  const translation = createTranslation({ exec, tag, hostNamespace, load: (text) => nft(hostNamespace, text) });
  const addressesOf = (here: HostState): string[] =>
    [...here.links.values()].flatMap(({ addresses }) => addresses.map((address) => address.split("/", 1)[0] ?? ""));

  async function set(namespace: string | null, settings: readonly string[]): Promise<void> {
    if (settings.length > 0) await exec.run([...enter(namespace), "sysctl", "-eqw", ...settings]);
  }

  /** What this process has applied last, if it differs from the image in nothing but the rules. */
  function beforeRules(spec: NetworkSpec): Known | null {
    const before = known.get(spec.id);
    const rest = (one: NetworkSpec) => JSON.stringify({ ...one, generation: 0, firewall: null });
    const isLater = before !== undefined && before.spec.generation < spec.generation;
    return isLater && rest(before.spec) === rest(spec) ? before : null;
  }

  /** The short way for the most frequent change. False when it did not work; then the long way finds out what is to be done. */
  async function replaceRules(spec: NetworkSpec, texts: Texts, { edge }: Known, pair: Pair): Promise<boolean> {
    const same = edge?.digest === digestOf(texts.edge);
    const next = swap("edge", texts.edge, edge, []);
    try {
      const [links] = await Promise.all([
        exec.run(["ip", ...onHost, "-j", "link"]).then(readLinks),
        same ? null : pair.first(next.first),
      ]);
      if (arrivingPorts(spec, links).length > 0) return false;
      if (!same) await pair.second(next.second + generationLine(next.active, spec.generation));
      else await ip(spaceOf(spec.id), [aliasLine(markText(spec.id, spec.generation))]);
      known.set(spec.id, { spec, edge: same ? edge : next.active });
      if (!same) removeLater(spec.id, next.past);
      return true;
    } catch {
      return false;
    }
  }

  async function ensure(
    spec: NetworkSpec,
    texts: Texts,
    found: NamespaceState | null,
    tell: (part: string) => void = () => {},
  ): Promise<void> {
    const space = spaceOf(spec.id);
    const device = wireguardOf(tag, spec.id);
    if (found === null) {
      // A namespace whose name was taken away lives on with all that runs in it, and would answer in the new one's place.
      await Promise.all(tunnels.map((engine) => engine.remove({ namespace: space, device })));
      await dhcp.stop(spec.id);
    }
    const [here, isOpened] = await Promise.all([
      readHost(spec, found === null),
      spec.edgeAddress !== null && hostGuard.ensure(spec),
    ]);
    const uplink = uplinkOf(tag, spec.id);
    const coming = arrivingPorts(spec, here.links);
    const isAgain = found !== null && coming.length === 0 && readMark(found).generation === spec.generation;
    /** What is to be done to a part; a generation that was in force before left nothing to do. */
    const due = <List extends { readonly length: number }>(part: string, list: List): List => {
      if (isAgain && list.length > 0) tell(part);
      return list;
    };

    if (isOpened) due("host guard", [uplink]);
    const joined = spec.edgeAddress === null || (here.links.has(uplink) && found?.links.has("up0") === true);
    if (found === null || !joined) {
      due("uplink", [uplink]);
      if (here.links.has(uplink)) await ip(hostNamespace, [`link del ${uplink}`]).catch(unlessMissing);
      if (found === null || spec.edgeAddress !== null) await ip(null, creationLines(spec, options, found !== null));
    }
    const base =
      joined || found === null
        ? found
        : { ...found, links: new Map([...found.links].filter(([name]) => name !== "up0")), routes: new Set<string>() };
    if (found !== null) await ip(space, leavingLines(spec, found, coming));
    const before = known.get(spec.id);
    const altered = isAgain && before?.rules !== undefined && before.rules !== found.rules;
    const replaced = due("firewall", stale(texts, found, altered));
    if (found !== null) await set(space, due("settings", earlyArguments(spec, found)));
    const [edge] = await Promise.all([
      load(spec.id, texts, found, replaced),
      translation.ensure(spec, here.nat, addressesOf(here), (text) => due("translation", text)),
      ip(space, due("bridge", spaceLines(spec, base))),
    ]);
    await ip(hostNamespace, moveLines(spec, options, coming));
    await Promise.all([
      ip(space, due("ports", portLines(spec, base, coming))),
      set(space, due("settings", settingArguments(spec, base))),
      set(hostNamespace, due("forwarding", forwardingArguments(spec, here.settings, [...here.links.keys()]))),
      joined || spec.edgeAddress === null
        ? ip(hostNamespace, due("routes", hostUplinkLines(spec, options, here.links.get(uplink), here.routes)))
        : ip(hostNamespace, hostUplinkLines(spec, options, undefined, null)),
    ]);
    const shape = capabilities.bandwidth ? shapeLines(spec, base, new Set(coming.map(({ id }) => id))) : [];
    if (due("bandwidth", shape).length > 0)
      await exec.run([...enter(space), "tc", "-batch", "-"], { stdin: lines(shape) });
    if (capabilities.dhcp) await dhcp.ensure(spec, space);
    if (spec.edgeAddress !== null && spec.v4.gateway !== null) {
      const { gateway, cidr } = spec.v4;
      const ends = { namespace: space, device, address: spec.edgeAddress, cidr, gateway };
      await Promise.all(tunnels.map((engine) => engine.apply(ends, spec)));
    }
    await ip(space, finishLines(spec, base, coming));
    known.set(spec.id, { spec, edge, ...(isAgain && replaced.length === 0 && { rules: found.rules }) });
  }

  async function erase(network: number): Promise<void> {
    const space = spaceOf(network);
    await Promise.all(tunnels.map((engine) => engine.remove({ namespace: space, device: wireguardOf(tag, network) })));
    await dhcp.stop(network);
    await ip(hostNamespace, [`link del ${uplinkOf(tag, network)}`]).catch(unlessMissing);
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
  async function undo(spec: NetworkSpec): Promise<void> {
    const argv = ["ip", "-force", "-n", spaceOf(spec.id), "-batch", "-"];
    await exec.run(argv, { stdin: lines(returnLines(spec, options)), codes: [0, 1] });
    await erase(spec.id);
  }

  /** What this process has applied. */
  const known = new Map<number, Known>();

  // One thing at a time per network: two writers of one namespace would not see each other's half-done work.
  const queue = createKeyedQueue();
  const inTurn = <Result>(network: number, work: () => Promise<Result>): Promise<Result> => queue.run([network], work);

  /** Resolves to the generation that is in force then. */
  async function applyFull(spec: NetworkSpec, texts: Texts, tell?: (part: string) => void): Promise<number> {
    const found = spaces().has(spaceOf(spec.id)) ? await look(spec) : null;
    const generation = found === null ? 0 : readMark(found).generation;
    if (generation > spec.generation) return generation;
    try {
      await ensure(spec, texts, found, tell);
    } catch (error) {
      known.delete(spec.id);
      // What never worked leaves nothing; what worked goes on as it was.
      if (generation === 0) await undo(spec).catch(() => {});
      throw error;
    }
    return spec.generation;
  }

  const observed = () =>
    [...spaces()].flatMap((space) => {
      const network = networkOf(tag, space);
      return network === null ? [] : [{ network, space }];
    });
  const observer = createObserver({
    ...options,
    dhcpRuns: dhcp.isRunning,
    occupiedPorts: translation.occupiedOf,
    isGuarded: hostGuard.isComplete,
    networks: observed,
  });

  return {
    apply: (spec, tell) =>
      inTurn(spec.id, async () => {
        const before = beforeRules(spec);
        const pair = before && nftPair(spec.id);
        try {
          const texts = renderTexts(spec, capabilities.kernelEsp, options.limits);
          const isDone = before !== null && pair !== null && (await replaceRules(spec, texts, before, pair));
          const generation = isDone ? spec.generation : await applyFull(spec, texts, tell);
          if (generation === spec.generation) observer.know(spec, digestOf(texts.edge));
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
    async readBanner(network, address, port) {
      const spec = known.get(network)?.spec;
      if (spec === undefined || spec.edgeAddress === null) return null;
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
