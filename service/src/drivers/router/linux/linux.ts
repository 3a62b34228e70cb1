/**
 * The router driver for Linux: one network namespace per network. It keeps no state of its own: before each change it reads the actual
 * state from the kernel and applies only the differences. A service that was killed at any point therefore continues where it stopped, and
 * a complete network is not touched. The firewall and the source lock are loaded before a port goes up; the mark with the generation in
 * force is written last.
 */
import { chmodSync, mkdirSync, readdirSync } from "node:fs";
import { createKeyedQueue } from "../../../base/serialqueue.ts";
import { runInTurns } from "../../../base/turn.ts";
import type { Exec } from "../../exec.ts";
import { dropRights } from "../../privateroot.ts";
import type { NetworkSpec, Router } from "../interface.ts";
import { isIn } from "../model/closedaddresses.ts";
import { namespaceOf, networkOf, uplinkOf, wireguardOf } from "../model/name.ts";
import type { Limits } from "../nft/connectionlimits.ts";
import { digestOf, environment } from "../nft/firewall.ts";
import { createHostGuard } from "../nft/hostguard.ts";
import { natTable } from "../nft/nat.ts";
import { activeOf, generationLine, kinds, removalText, staleOf, swap, type TableKind } from "../nft/swap.ts";
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
import { createPortChange, type Known } from "./portchange.ts";
import { shapeLines } from "./shape.ts";
import {
  addElements,
  elementLines,
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
import { alteredTables, renderTexts, staleTables, type Texts } from "./texts.ts";
import type { TunnelEngine } from "./tunnels.ts";

/** Options of `createLinux`. */
export interface LinuxOptions extends Site {
  readonly exec: Exec;
  /** Folder for files of running programs, created with mode 711. Its path must be short and on a file system that a reboot empties. */
  readonly runFolder: string;
  readonly capabilities: Capabilities;
  readonly tunnels: readonly TunnelEngine[];
  /** Addresses and blocks of the host that guests may reach. */
  readonly opened: readonly string[];
  readonly limits?: Limits;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The part of the actual state that is in the host's own namespace. */
interface HostState {
  readonly links: ReadonlyMap<string, Link>;
  readonly routes: ReadonlySet<string>;
  /** `nft` listing of the network's translation table, "" without. */
  readonly nat: string;
  readonly settings: ReadonlyMap<string, string>;
}

/** Rights of the program that reads what a server sends; its user id, below those of servers, has no entry in /etc/passwd. */
const readerRights = dropRights(699_997, 699_997);
/** Run by `sh` with address and port: prints the first bytes. A hostile server sends as many as it can. */
const readStart = 'busybox nc -w 1 "$0" "$1" | head -c 512';

/** Creates the driver and its run folder. */
export function createLinux(options: LinuxOptions): Router {
  const { exec, tag, hostNamespace, runFolder, capabilities, tunnels } = options;
  mkdirSync(runFolder, { recursive: true });
  // Programs that do not run as root open their own files below, but cannot list the folder.
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

  async function readNamespace(spec: NetworkSpec): Promise<NamespaceState | null> {
    // A namespace that was removed meanwhile produces no output.
    const read = (batch: readonly string[]): Promise<string> =>
      exec.run(["ip", "-force", "-batch", "-"], { stdin: lines(batch), codes: [0, 1], timeout: 60_000 });
    const [found] = readSnapshot(await read(snapshotLines(spaceOf(spec.id), true, Object.keys(settings(spec)))));
    if (found !== undefined) {
      const batch = elementLines(spaceOf(spec.id), found.rules);
      return batch.length === 0 ? found : { ...found, rules: addElements(found.rules, await read(batch)) };
    }
    // With all rights: a name without a namespace is a file that only they can open.
    const why = await exec.run(["ip", "-n", spaceOf(spec.id), "-o", "link", "show", "lo"], { rights: "all" }).then(
      () => null,
      (error: unknown) => (error as Error).message,
    );
    // A killed `netns add` leaves a name without a namespace. A namespace that exists but could not be read must not be created again.
    if (why?.includes("Invalid argument")) await ip(null, [`netns del ${spaceOf(spec.id)}`]);
    else if (!why?.includes("No such file"))
      throw new Error(`namespace ${spaceOf(spec.id)} exists but could not be read: ${why ?? "no output"}`);
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

  /** Activates all replaced tables in one step, then removes the tables that packets no longer pass. */
  async function load(network: number, texts: Texts, found: NamespaceState | null, replaced: readonly TableKind[]) {
    const space = spaceOf(network);
    const active = (kind: TableKind) => (found === null ? null : activeOf(found, kind));
    const idle = (kind: TableKind) => (found === null ? [] : staleOf(found, kind));
    const swaps = replaced.map((kind) => swap(kind, texts[kind], active(kind), idle(kind)));
    const tidy = kinds.filter((kind) => !replaced.includes(kind)).map((kind) => removalText(kind, idle(kind)));
    await nft(space, [...swaps.map(({ first }) => first), ...tidy].join(""));
    await nft(space, swaps.map(({ second }) => second).join(""));
    removeLater(network, swaps.map(({ past }) => past).join(""));
    return new Map(
      kinds.flatMap((kind) => {
        const table = swaps[replaced.indexOf(kind)]?.active ?? active(kind);
        return table === null ? [] : [[kind, table] as const];
      }),
    );
  }

  /** Removes old tables in the background, before the next change of the network. If that fails, the next full apply removes them. */
  const removeLater = (network: number, past: string): void => {
    if (past !== "") void enqueue(network, () => nft(spaceOf(network), past).catch(() => known.delete(network)));
  };

  const translation = createTranslation({ exec, tag, hostNamespace, load: (text) => nft(hostNamespace, text) });
  const addressesOf = (here: HostState): string[] =>
    [...here.links.values()].flatMap(({ addresses }) => addresses.map((address) => address.split("/", 1)[0] ?? ""));

  async function set(namespace: string | null, settings: readonly string[]): Promise<void> {
    if (settings.length > 0) await exec.run([...enter(namespace), "sysctl", "-eqw", ...settings]);
  }

  /** Returns the last applied state if it differs from the spec in nothing but the firewall. */
  function beforeRules(spec: NetworkSpec): Known | null {
    const before = known.get(spec.id);
    const rest = (one: NetworkSpec) => JSON.stringify({ ...one, generation: 0, firewall: null });
    const isLater = before !== undefined && before.spec.generation < spec.generation;
    return isLater && rest(before.spec) === rest(spec) ? before : null;
  }

  /** Fast path for the most frequent change, a new rule set. Returns false when it failed; the full apply then finds what is missing. */
  async function replaceRules(spec: NetworkSpec, texts: Texts, { tables }: Known, pair: Pair): Promise<boolean> {
    const edge = tables.get("edge") ?? null;
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
      known.set(spec.id, { spec, tables: same ? tables : new Map([...tables, ["edge", next.active]]) });
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
    onRepair: (part: string) => void = () => {},
  ): Promise<void> {
    const space = spaceOf(spec.id);
    const device = wireguardOf(tag, spec.id);
    if (found === null) {
      // A namespace without a name stays alive while programs run in it, and would receive packets in place of the new one.
      await Promise.all(tunnels.map((engine) => engine.remove({ namespace: space, device })));
      await dhcp.stop(spec.id);
    }
    const [here, isAltered] = await Promise.all([
      readHost(spec, found === null),
      spec.edgeAddress !== null && hostGuard.ensure(spec),
    ]);
    const uplink = uplinkOf(tag, spec.id);
    const coming = arrivingPorts(spec, here.links);
    const isAgain = found !== null && coming.length === 0 && readMark(found).generation === spec.generation;
    /** Reports a repair if the generation was in force already and there is still something to do. */
    const due = <List extends { readonly length: number }>(part: string, list: List): List => {
      if (isAgain && list.length > 0) onRepair(part);
      return list;
    };

    if (isAltered) due("host guard", [uplink]);
    const hasUplink = spec.edgeAddress === null || (here.links.has(uplink) && found?.links.has("up0") === true);
    if (found === null || !hasUplink) {
      due("uplink", [uplink]);
      if (here.links.has(uplink)) await ip(hostNamespace, [`link del ${uplink}`]).catch(unlessMissing);
      if (found === null || spec.edgeAddress !== null) await ip(null, creationLines(spec, options, found !== null));
    }
    const base =
      hasUplink || found === null
        ? found
        : { ...found, links: new Map([...found.links].filter(([name]) => name !== "up0")), routes: new Set<string>() };
    if (found !== null) await ip(space, leavingLines(spec, found, coming));
    const before = known.get(spec.id);
    const altered = isAgain && before?.rules !== undefined && before.rules !== found.rules;
    const replaced = staleTables(texts, found, altered);
    if (found !== null) due("firewall", alteredTables(texts, found, replaced));
    if (found !== null) await set(space, due("settings", earlyArguments(spec, found)));
    const [tables] = await Promise.all([
      load(spec.id, texts, found, replaced),
      translation.ensure(spec, here.nat, addressesOf(here), () => void due("translation", [uplink])),
      ip(space, due("bridge", spaceLines(spec, base))),
    ]);
    await ip(hostNamespace, moveLines(spec, options, coming));
    await Promise.all([
      ip(space, due("ports", portLines(spec, base, coming))),
      set(space, due("settings", settingArguments(spec, base))),
      set(hostNamespace, due("forwarding", forwardingArguments(spec, here.settings, [...here.links.keys()]))),
      hasUplink || spec.edgeAddress === null
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
    known.set(spec.id, { spec, tables, ...(isAgain && replaced.length === 0 && { rules: found.rules }) });
  }

  async function removeAll(network: number): Promise<void> {
    const space = spaceOf(network);
    await Promise.all(tunnels.map((engine) => engine.remove({ namespace: space, device: wireguardOf(tag, network) })));
    await dhcp.stop(network);
    await ip(hostNamespace, [`link del ${uplinkOf(tag, network)}`]).catch(unlessMissing);
    await translation.remove(network);
    await hostGuard.release(network, () => ownNamespaces().every((other) => other.network === network));
    if (!spaces().has(space)) return;
    // A program that still runs in the namespace would keep it alive without a name.
    const pids = await exec.run(["ip", "netns", "pids", space], { rights: "all" }).catch((error: unknown) => {
      unlessMissing(error);
      return "";
    });
    for (const pid of pids.split("\n").filter(Boolean)) {
      const child = exec.find(Number(pid));
      if (child !== null) exec.signal(child, "SIGKILL");
    }
    await ip(null, [`netns del ${space}`]).catch(unlessMissing);
  }

  /** Removes the network, but first moves the devices of servers back to the host for the next attempt. */
  async function undo(spec: NetworkSpec): Promise<void> {
    const argv = ["ip", "-force", "-n", spaceOf(spec.id), "-batch", "-"];
    await exec.run(argv, { stdin: lines(returnLines(spec, options)), codes: [0, 1], rights: "all" });
    await removeAll(spec.id);
  }

  const planPorts = createPortChange({ ...options, dhcp, nft });
  /** The last applied state by network. */
  const known = new Map<number, Known>();

  // One operation at a time per network: two writers would not see each other's incomplete work.
  const queue = createKeyedQueue();
  const enqueue = <Result>(network: number, work: () => Promise<Result>): Promise<Result> => queue.run([network], work);

  /** Compares the complete spec with the actual state and applies the differences. Resolves to the generation in force. */
  async function applyFull(spec: NetworkSpec, texts: Texts, onRepair?: (part: string) => void): Promise<number> {
    const found = spaces().has(spaceOf(spec.id)) ? await readNamespace(spec) : null;
    const generation = found === null ? 0 : readMark(found).generation;
    if (generation > spec.generation) return generation;
    try {
      await ensure(spec, texts, found, onRepair);
    } catch (error) {
      known.delete(spec.id);
      // A network that never worked is removed; one that worked stays as it was.
      if (generation === 0) await undo(spec).catch(() => {});
      throw error;
    }
    return spec.generation;
  }

  const ownNamespaces = () =>
    [...spaces()].flatMap((space) => {
      const network = networkOf(tag, space);
      return network === null ? [] : [{ network, space }];
    });
  const observer = createObserver({
    ...options,
    dhcpRuns: dhcp.isRunning,
    occupiedPorts: translation.occupiedOf,
    isGuarded: hostGuard.isComplete,
    networks: ownNamespaces,
  });

  return {
    apply: (spec, onRepair) =>
      enqueue(spec.id, async () => {
        const before = beforeRules(spec);
        const pair = before && nftPair(spec.id);
        try {
          const texts = await runInTurns(renderTexts(spec, capabilities.kernelEsp, options.limits));
          const isDone = before !== null && pair !== null && (await replaceRules(spec, texts, before, pair));
          const generation = isDone ? spec.generation : await applyFull(spec, texts, onRepair);
          if (generation === spec.generation) observer.know(spec, digestOf(texts.edge));
          return generation;
        } finally {
          pair?.dismiss();
        }
      }),
    applyPorts: (change) =>
      enqueue(change.id, async () => {
        const before = known.get(change.id);
        if (before === undefined || before.spec.generation !== change.from) return false;
        const perform = planPorts(change, before);
        known.delete(change.id);
        // If it fails, the full apply finds what is missing.
        const after = await perform().catch(() => null);
        if (after === null) return false;
        known.set(change.id, after);
        observer.know(after.spec, after.tables.get("edge")?.digest ?? "");
        return true;
      }),
    remove: (network) =>
      enqueue(network, async () => {
        known.delete(network);
        await removeAll(network);
        observer.forget(network);
      }),
    observe: (network) => observer.observe(network),
    observePort: (network, port) => observer.observePort(network, port),
    sourceTo: translation.sourceTo,
    async readBanner(network, address, port) {
      const spec = known.get(network)?.spec;
      if (spec === undefined || spec.edgeAddress === null) return null;
      // From the edge, other addresses would be those of the host and of other networks.
      if (!isIn([spec.v4.cidr, ...(spec.v6 === null ? [] : [spec.v6.cidr])], address)) return null;
      const call = ["timeout", "1", ...readerRights, "sh", "-c", readStart, address, String(port)];
      // The command ends when it has received something, or is ended (124, 143) after a second without data.
      const reading = { codes: [0, 1, 124, 143], rights: "all" } as const;
      const output = await exec.run([...enter(spaceOf(network)), ...call], reading);
      return output.split(/\r?\n/, 1)[0] || null;
    },
    async close() {
      await queue.settle();
      for (const engine of tunnels) engine.close();
    },
  };
}
