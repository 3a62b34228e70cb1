/**
 * The ports of `router.apply`. The client names each list that it sends with a key. The next apply of the network then carries only the
 * difference to the list that the agent accepted last, because reading and checking all rows costs more than the rest of the call. An
 * agent that does not keep that list, as after a restart or a lost response, refuses with `ports_unknown`, and gets all rows. Keys are
 * random, so the list of another control plane is never taken for the client's own.
 */
import { randomUUID } from "node:crypto";
import type { NetworkSpec, Port } from "../drivers/router/interface.ts";
import { mostPorts, type PortList, type PortRow } from "./contract/router.ts";
import { AgentError } from "./error.ts";

/** Returns a port as it is sent, without its device. */
export const toRow = ({ id, mac, addresses, bandwidth, name }: Port): PortRow => [
  id,
  mac,
  addresses as string[],
  bandwidth,
  name,
];

/** Returns whether both have the same row. */
const isSame = (one: Port, other: Port): boolean =>
  one === other ||
  (one.mac === other.mac &&
    one.bandwidth === other.bandwidth &&
    one.name === other.name &&
    one.addresses.length === other.addresses.length &&
    one.addresses.every((address, at) => address === other.addresses[at]));

/** A list that the agent has accepted. */
interface Accepted {
  readonly key: string;
  readonly ports: readonly Port[];
  /** Positions in `ports`, by id. */
  readonly places: ReadonlyMap<number, number>;
}

/** Returns the difference; null: the agent would bring the ports into another order. */
function compare(before: Accepted, ports: readonly Port[]): { rows: PortRow[]; removed: number[] } | null {
  const rows: PortRow[] = [];
  const removed: number[] = [];
  let place = -1;
  for (const port of ports) {
    const found = before.places.get(port.id) ?? before.ports.length;
    // New ports follow the ones that are kept.
    if (found < before.ports.length ? found <= place : false) return null;
    for (let at = place + 1; at < found; at++) removed.push(before.ports[at]?.id ?? 0);
    place = found;
    const old = before.ports[found];
    if (old === undefined || !isSame(old, port)) rows.push(toRow(port));
  }
  for (let at = place + 1; at < before.ports.length; at++) removed.push(before.ports[at]?.id ?? 0);
  return { rows, removed };
}

/** The client's side. */
export interface SentPorts {
  /** Calls `send` with the ports of the spec as they are sent, again with all of them if the agent needs them, and returns its result. */
  apply(spec: NetworkSpec, send: (ports: PortList) => Promise<number>): Promise<number>;
  /** The network was removed. */
  forget(network: number): void;
}

/** Creates the client's side. */
export function createSentPorts(): SentPorts {
  const accepted = new Map<number, Accepted>();
  return {
    async apply({ id, ports }, send) {
      const key = randomUUID();
      const before = accepted.get(id);
      const change = before === undefined ? null : compare(before, ports);
      accepted.delete(id);
      const sendAll = (): Promise<number> => send({ key, from: null, rows: ports.map(toRow), removed: [] });
      const sent =
        before === undefined || change === null
          ? sendAll()
          : send({ key, from: before.key, ...change }).catch((error: unknown) => {
              if (error instanceof AgentError && error.code === "ports_unknown") return sendAll();
              throw error;
            });
      const applied = await sent.catch((error: unknown) => {
        // An agent of an earlier release knows no keys.
        if (error instanceof AgentError && error.code === "input_invalid") return send(ports.map(toRow));
        throw error;
      });
      accepted.set(id, { key, ports, places: new Map(ports.map((port, place) => [port.id, place])) });
      return applied;
    },
    forget: (network) => void accepted.delete(network),
  };
}

/** The agent's side: returns the ports of a list of this network. Throws `ports_unknown`. */
export type KeptPorts = (network: number, list: PortList, fromRow: (row: PortRow) => Port) => readonly Port[];

/** Ports that are kept of all networks, beside those of the last list; each network counts as one more. They take about 20 MB. */
const mostKept = 65_536;

/** Creates the agent's side. Beyond `most` ports it forgets the networks that were not applied for the longest time. */
export function createKeptPorts(most = mostKept): KeptPorts {
  /** The networks in the order of their last apply. */
  const kept = new Map<number, { readonly key: string; readonly ports: readonly Port[] }>();
  let count = 0;

  function forget(network: number): void {
    const ports = kept.get(network)?.ports;
    if (ports !== undefined) count -= ports.length + 1;
    kept.delete(network);
  }

  return (network, list, fromRow) => {
    if (Array.isArray(list)) return list.map(fromRow);
    const { key, from, rows, removed } = list;
    const before = kept.get(network);
    if (from !== null && before?.key !== from)
      throw new AgentError("ports_unknown", "the host agent does not have the ports of the network");
    const gone = new Set(removed);
    const changed = new Map(rows.map((row) => [row[0], fromRow(row)]));
    const stay = from === null ? [] : (before?.ports ?? []).filter(({ id }) => !gone.has(id));
    const ports = stay.map((port) => {
      const other = changed.get(port.id);
      changed.delete(port.id);
      return other ?? port;
    });
    for (const port of changed.values()) ports.push(port);
    if (ports.length > mostPorts)
      throw new AgentError("input_invalid", `router.apply: the network has more than ${mostPorts} ports`);
    forget(network);
    kept.set(network, { key, ports });
    count += ports.length + 1;
    for (const oldest of kept.keys()) {
      if (count <= most || kept.size === 1) break;
      forget(oldest);
    }
    return ports;
  };
}
