/**
 * Brings a network's table of translation on the machine into force (`nat.ts` says what is in it), and tells under which address the
 * machine sends. A connection is translated as its first packet was, however long it lives: a peer that called before its port led
 * anywhere would go on talking to the machine, so what the kernel remembers of such calls is forgotten when the port changes hands.
 */
import { isIPv4 } from "node:net";
import type { Exec } from "../../exec.ts";
import type { NetworkSpec } from "../interface.ts";
import { uplinkPrefix } from "../model/name.ts";
import { digestOf, firstText } from "./firewall.ts";
import { forwardsOf, natRemoval, natText } from "./nat.ts";

export interface TranslationOptions {
  readonly exec: Exec;
  readonly tag: string;
  /** Namespace that plays the machine in tests; null: the machine itself. */
  readonly hostNamespace: string | null;
  /** Loads a text of nftables on the machine. */
  readonly load: (text: string) => Promise<void>;
}

export interface Translation {
  /** `listing`: the network's table as it is, "" without. `addresses`: the machine's own. `due` hears of the change, "" where none is. */
  ensure(
    spec: NetworkSpec,
    listing: string,
    addresses: readonly string[],
    due: (text: string) => string,
  ): Promise<void>;
  remove(network: number): Promise<void>;
  /** Ports that should lead to the network's edge and belong to a program of the machine. */
  occupiedOf(network: number): readonly number[];
  /** The machine's address in packets to there, null: to the internet. Null: there is no way. */
  sourceTo(destination: string | null): Promise<string | null>;
}

/** An address of the internet (a root server of DNS); nothing is sent there. */
const far = "198.41.0.4";

/** Ports at which somebody listens, from `/proc/net/udp`: not only on loopback (127.0.0.1 is `0100007F` there) and not connected. */
export function readListening(table: string): Set<number> {
  const rows = [...table.matchAll(/^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) /gm)];
  return new Set(
    rows
      .filter(([, local = "", , , remote]) => !(local.length === 8 && local.endsWith("7F")) && remote === "0000")
      .map(([, , port = ""]) => Number.parseInt(port, 16)),
  );
}

const isOutside = (address: string): boolean => isIPv4(address) && !/^(127|169\.254)\./.test(address);

export function createTranslation({ exec, tag, hostNamespace, load }: TranslationOptions): Translation {
  const enter = hostNamespace === null ? [] : ["nsenter", `--net=/run/netns/${hostNamespace}`];
  const held = new Map<number, readonly number[]>();
  /** What leads to each network's edge. */
  const known = new Map<number, { readonly edge: string; readonly ports: readonly number[] }>();

  async function listeners(): Promise<Set<number>> {
    const files = ["/proc/net/udp", "/proc/net/udp6"];
    // Without IPv6 one of them is missing.
    return readListening(await exec.run([...enter, "cat", ...files], { codes: [0, 1] }));
  }

  /** Nothing to forget is fine (1), and so is a machine without the program: then the kernel forgets by itself when a peer pauses. */
  const forget = (filters: readonly string[]): Promise<unknown> =>
    exec.run([...enter, "conntrack", "-D", "-p", "udp", ...filters], { codes: [0, 1] }).catch(() => "");

  return {
    async ensure(spec, listing, addresses, due) {
      const ports = forwardsOf(spec);
      const busy = ports.length === 0 ? new Set<number>() : await listeners();
      const taken = ports.filter((port) => busy.has(port));
      held.set(spec.id, taken);
      const wanted = natText(spec, tag, taken);
      const removal = listing === "" ? "" : natRemoval(tag, spec.id);
      const isRight = wanted !== null && listing.includes(` d_${digestOf(wanted)} `);
      const text = wanted === null ? removal : isRight ? "" : listing === "" ? firstText(wanted) : wanted;
      if (due(text) !== "") await load(text);
      const open = ports.filter((port) => !taken.includes(port));
      const before = known.get(spec.id)?.ports ?? [];
      if (spec.edgeAddress !== null) known.set(spec.id, { edge: spec.edgeAddress, ports: open });
      if (text === "") return;
      for (const port of new Set([...before, ...open]))
        for (const address of addresses.filter(isOutside))
          await forget(["--orig-dst", address, "--dport", String(port)]);
    },
    async remove(network) {
      const was = known.get(network);
      held.delete(network);
      known.delete(network);
      await load(natRemoval(tag, network));
      for (const port of was?.ports ?? []) await forget(["--reply-src", was?.edge ?? "", "--dport", String(port)]);
    },
    occupiedOf: (network) => held.get(network) ?? [],
    async sourceTo(destination) {
      const ip = (...args: readonly string[]) =>
        exec.run(["ip", ...(hostNamespace === null ? [] : ["-n", hostNamespace]), "-j", "-4", ...args]);
      const route = await ip("route", "get", destination ?? far).catch(() => "[]");
      const [found] = JSON.parse(route || "[]") as readonly { prefsrc?: string }[];
      if (found?.prefsrc !== undefined) return found.prefsrc;
      // A machine without a way out may be reached all the same by those beside it.
      const links = JSON.parse((await ip("addr", "show", "scope", "global", "up")) || "[]") as readonly {
        ifname?: string;
        addr_info?: readonly { local?: string }[];
      }[];
      const others = links.filter(({ ifname = "" }) => !ifname.startsWith(uplinkPrefix(tag)));
      return others.flatMap(({ addr_info = [] }) => addr_info)[0]?.local ?? null;
    },
  };
}
