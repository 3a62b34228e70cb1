/**
 * Loads a network's translation table on the host (rendered by `nat.ts`) and finds the host's source address. A connection keeps the
 * translation of its first packet. A peer that connected before its port led to the edge would stay connected to the host itself, so the
 * conntrack entries of a port are deleted when the port changes.
 */
import { isIPv4 } from "node:net";
import type { Exec } from "../../exec.ts";
import type { NetworkSpec } from "../interface.ts";
import { uplinkPrefix } from "../model/name.ts";
import { digestOf, firstText } from "./firewall.ts";
import { forwardsOf, natRemoval, natText } from "./nat.ts";

/** Options of `createTranslation`. */
export interface TranslationOptions {
  readonly exec: Exec;
  readonly tag: string;
  /** Namespace that replaces the host's own in tests; null: the namespace of this process. */
  readonly hostNamespace: string | null;
  /** Loads nftables text on the host. */
  readonly load: (text: string) => Promise<void>;
}

/** Manages the translation tables of all networks. */
export interface Translation {
  /**
   * Brings the network's table to the spec. `listing`: its current listing, "" without. `addresses`: the host's addresses. `onRepair` is
   * called if another program has removed the table since the last call; a text of ours that has changed is no repair.
   */
  ensure(spec: NetworkSpec, listing: string, addresses: readonly string[], onRepair: () => void): Promise<void>;
  /** Removes the network's table and the conntrack entries of its ports. */
  remove(network: number): Promise<void>;
  /** Returns the ports that should lead to the network's edge but belong to a program of the host. */
  occupiedOf(network: number): readonly number[];
  /** Returns the host's source address in packets to that address, or (null) to the internet. Null: there is no route. */
  sourceTo(destination: string | null): Promise<string | null>;
}

/** A public address (a root server of DNS) for route lookups; no packet is sent there. */
const far = "198.41.0.4";

/**
 * Parses `/proc/net/udp`: returns ports with a listening socket that is not connected and not only on loopback (`0100007F` is 127.0.0.1).
 */
export function readListening(table: string): Set<number> {
  const rows = [...table.matchAll(/^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) /gm)];
  return new Set(
    rows
      .filter(([, local = "", , , remote]) => !(local.length === 8 && local.endsWith("7F")) && remote === "0000")
      .map(([, , port = ""]) => Number.parseInt(port, 16)),
  );
}

const isOutside = (address: string): boolean => isIPv4(address) && !/^(127|169\.254)\./.test(address);

/** Creates the manager; it changes nothing yet. */
export function createTranslation({ exec, tag, hostNamespace, load }: TranslationOptions): Translation {
  const enter = hostNamespace === null ? [] : ["nsenter", `--net=/run/netns/${hostNamespace}`];
  const held = new Map<number, readonly number[]>();
  /** By network: its edge, the ports that lead to it, and the digest of its table, "" without. */
  const known = new Map<
    number,
    { readonly edge: string; readonly ports: readonly number[]; readonly digest: string }
  >();

  async function listeners(): Promise<Set<number>> {
    const files = ["/proc/net/udp", "/proc/net/udp6"];
    // One of them does not exist without IPv6.
    return readListening(await exec.run([...enter, "cat", ...files], { codes: [0, 1] }));
  }

  /** Runs `conntrack`. Exit code 1 means that there were no entries. Without the program, the kernel drops them when a peer pauses. */
  const track = (action: "-L" | "-D", ...filters: readonly string[]): Promise<string> =>
    exec.run([...enter, "conntrack", action, "-p", "udp", ...filters], { codes: [0, 1] }).catch(() => "");

  /** Deletes the conntrack entries of a port at the host's addresses. Most ports have none, and a host has many addresses. */
  async function forget(port: number, addresses: readonly string[]): Promise<void> {
    const listing = await track("-L", "--dport", String(port));
    const called = new Set([...listing.matchAll(/^.*?\bdst=(\S+)/gm)].map(([, address]) => address));
    for (const address of addresses)
      if (called.has(address)) await track("-D", "--orig-dst", address, "--dport", String(port));
  }

  return {
    async ensure(spec, listing, addresses, onRepair) {
      const ports = forwardsOf(spec);
      const busy = ports.length === 0 ? new Set<number>() : await listeners();
      const taken = ports.filter((port) => busy.has(port));
      held.set(spec.id, taken);
      const wanted = natText(spec, tag, taken);
      const removal = listing === "" ? "" : natRemoval(tag, spec.id);
      const digest = wanted === null ? "" : digestOf(wanted);
      const isRight = wanted !== null && listing.includes(` d_${digest} `);
      const text = wanted === null ? removal : isRight ? "" : listing === "" ? firstText(wanted) : wanted;
      const before = known.get(spec.id);
      if (text !== "" && before?.digest === digest && !/ d_[0-9a-f]{16} /.test(listing)) onRepair();
      if (text !== "") await load(text);
      const open = ports.filter((port) => !taken.includes(port));
      if (spec.edgeAddress !== null) known.set(spec.id, { edge: spec.edgeAddress, ports: open, digest });
      if (text === "") return;
      for (const port of new Set([...(before?.ports ?? []), ...open])) await forget(port, addresses.filter(isOutside));
    },
    async remove(network) {
      const was = known.get(network);
      held.delete(network);
      known.delete(network);
      await load(natRemoval(tag, network));
      for (const port of was?.ports ?? []) await track("-D", "--reply-src", was?.edge ?? "", "--dport", String(port));
    },
    occupiedOf: (network) => held.get(network) ?? [],
    async sourceTo(destination) {
      const ip = (...args: readonly string[]) =>
        exec.run(["ip", ...(hostNamespace === null ? [] : ["-n", hostNamespace]), "-j", "-4", ...args]);
      const route = await ip("route", "get", destination ?? far).catch(() => "[]");
      const [found] = JSON.parse(route || "[]") as readonly { prefsrc?: string }[];
      if (found?.prefsrc !== undefined) return found.prefsrc;
      // A host without a default route may still be reachable in its own subnet.
      const links = JSON.parse((await ip("addr", "show", "scope", "global", "up")) || "[]") as readonly {
        ifname?: string;
        addr_info?: readonly { local?: string }[];
      }[];
      const others = links.filter(({ ifname = "" }) => !ifname.startsWith(uplinkPrefix(tag)));
      return others.flatMap(({ addr_info = [] }) => addr_info)[0]?.local ?? null;
    },
  };
}
