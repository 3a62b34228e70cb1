/**
 * Changes single ports of a network that this process has applied before. It reads only the links of these ports and changes only their
 * elements in the tables, so the cost hardly depends on the other ports: only the lease file of DHCP is written completely. The order is
 * that of a complete apply: tables before a port goes up, the mark with the generation last. A change that was interrupted is completed by
 * the next complete apply, which compares everything.
 */
import type { Exec } from "../../exec.ts";
import type { NetworkSpec, Port, PortChange } from "../interface.ts";
import { BRIDGE, intakeOf, namespaceOf, portOf } from "../model/name.ts";
import { changePorts } from "../nft/porttable.ts";
import type { Active, TableKind } from "../nft/swap.ts";
import type { Capabilities } from "./detect.ts";
import type { Dhcp } from "./dhcp.ts";
import { guardParts } from "./guard.ts";
import { lines, runBatch } from "./ipbatch.ts";
import { arrivingPorts, finishLines, leavingLines, moveLines, portLines, type Site } from "./netns.ts";
import { portShapeLines } from "./shape.ts";
import { type Link, markText, type NamespaceState, readLinks } from "./snapshot.ts";
import { lockParts } from "./sourcelock.ts";
import { checkPorts } from "./texts.ts";

/** What this process has applied last to a network. */
export interface Known {
  readonly spec: NetworkSpec;
  /** The tables in force. */
  readonly tables: ReadonlyMap<TableKind, Active>;
  /** Listing of all tables from the last check, if nothing of ours has changed them since. */
  readonly rules?: string;
}

/** Dependencies of `createPortChange`. */
export interface PortChangeOptions extends Site {
  readonly exec: Exec;
  readonly capabilities: Pick<Capabilities, "bandwidth" | "dhcp">;
  readonly dhcp: Pick<Dhcp, "ensure">;
  /** Loads a text of nft in a namespace. */
  readonly nft: (namespace: string, text: string) => Promise<void>;
}

/** Returns the spec with some ports changed. The ports are in the order of their ids. */
function withPorts(spec: NetworkSpec, { generation, ports, removed }: PortChange): NetworkSpec {
  const gone = new Set([...removed, ...ports.map(({ id }) => id)]);
  const rest = spec.ports.filter(({ id }) => !gone.has(id));
  return { ...spec, generation, ports: [...rest, ...ports].sort((one, other) => one.id - other.id) };
}

/**
 * Creates the function that validates a change of a known network, and throws for an invalid port. The function that it returns applies the
 * change and resolves to what is in force then; null: the network must be applied completely. It rejects if the host refuses a part of the
 * change.
 */
export function createPortChange(
  options: PortChangeOptions,
): (change: PortChange, known: Known) => () => Promise<Known | null> {
  const { exec, tag, hostNamespace, capabilities, dhcp, nft } = options;

  /** Reads these links. Missing ones are left out. */
  async function readSome(namespace: string | null, names: readonly string[]): Promise<Map<string, Link>> {
    const argv = ["ip", ...(namespace === null ? [] : ["-n", namespace]), "-j", "-d", "-force", "-batch", "-"];
    const stdin = lines(names.map((name) => `link show dev ${name}`));
    const output = await exec.run(argv, { stdin, codes: [0, 1] });
    return new Map(output.split("\n").flatMap((line) => (line.startsWith("[") ? [...readLinks(line)] : [])));
  }

  return (change, { spec, tables }) => {
    const next = withPorts(spec, change);
    checkPorts(change.ports);
    const before = new Map(spec.ports.map((port) => [port.id, port]));
    const ids = [...new Set([...change.removed, ...change.ports.map(({ id }) => id)])];
    const replaced = ids.flatMap((id) => before.get(id) ?? []);
    const partsOf: Record<"lock" | "guard", (port: Port) => ReturnType<typeof lockParts>[]> = {
      lock: (port) => [lockParts(port, spec.v6 !== null)],
      guard: (port) => (spec.edgeAddress === null ? [] : [guardParts(port)]),
    };
    const swaps = (["lock", "guard"] as const).flatMap((kind) => {
      const active = tables.get(kind);
      const [from, to] = [replaced, change.ports].map((ports) => ports.flatMap(partsOf[kind]));
      return active === undefined || from === undefined || to === undefined
        ? []
        : [{ kind, ...changePorts(kind === "lock" ? "bridge" : "inet", active, from, to) }];
    });
    return () => (swaps.length < 2 ? Promise.resolve(null) : perform());

    async function perform(): Promise<Known | null> {
      const space = namespaceOf(tag, spec.id);
      const names = ["lo", BRIDGE, ...ids.flatMap((id) => [portOf(id), intakeOf(id)])];
      const [links, here] = await Promise.all([
        readSome(space, names),
        change.ports.length === 0
          ? new Map<string, Link>()
          : readSome(
              hostNamespace,
              change.ports.map(({ device }) => device),
            ),
      ]);
      // Another program removed the network, or its parts.
      if (links.get(BRIDGE)?.up !== true || !links.get("lo")?.alias.startsWith(markText(spec.id, 0).slice(0, -1)))
        return null;
      const rates = new Map(
        replaced.flatMap(({ id, bandwidth }) =>
          [portOf(id), intakeOf(id)].flatMap((name) =>
            bandwidth !== null && links.has(name) ? [[name, bandwidth] as const] : [],
          ),
        ),
      );
      const nothing = { routes: new Set<string>(), counters: new Map(), settings: new Map(), rules: "" };
      const found: NamespaceState = { links, rates, ...nothing };
      const part: NetworkSpec = { ...next, ports: change.ports };
      const coming = arrivingPorts(part, here);
      const ip = (namespace: string | null, batch: readonly string[]) => runBatch(exec, namespace, batch);

      await ip(space, leavingLines(part, found, coming));
      await nft(space, swaps.map(({ text }) => text).join(""));
      await ip(hostNamespace, moveLines(part, options, coming));
      const attached = portLines(part, found, coming);
      const shape = capabilities.bandwidth
        ? portShapeLines(part.ports, found, new Set(coming.map(({ id }) => id)))
        : [];
      const leases = async (): Promise<void> => {
        if (capabilities.dhcp) await dhcp.ensure(next, space);
      };
      if (shape.length > 0) {
        await ip(space, attached);
        await exec.run(["ip", "netns", "exec", space, "tc", "-batch", "-"], { stdin: lines(shape) });
        await leases();
        await ip(space, finishLines(part, found, coming));
      } else {
        await leases();
        await ip(space, [...attached, ...finishLines(part, found, coming)]);
      }
      return { spec: next, tables: new Map([...tables, ...swaps.map(({ kind, active }) => [kind, active] as const)]) };
    }
  };
}
