/**
 * Manages the routes that lead a network's packets into its tunnels. Each engine has its own routing table, used only for packets from the
 * network's block: the engine's own packets to a peer, which may be inside the peer's network, keep their route. The tunnel's MTU is an
 * attribute of the route, used by ICMP and TCP clamping. While a device is gone, and its routes with it, `guard.ts` drops unencrypted
 * packets.
 */

import { formatAddresses, parseAddresses } from "../../../base/address.ts";
import type { Exec } from "../../exec.ts";

/** A route to a peer's network. */
export interface TunnelRoute {
  readonly subnet: string;
  readonly mtu: number;
}

/** The desired routes of one engine in one network. */
export interface Routing {
  readonly namespace: string;
  /** Number of the table and preference of its rule. */
  readonly table: number;
  /** The network's block. */
  readonly cidr: string;
  /** Device of the tunnels; null: packets take the default route, and the kernel encrypts them. */
  readonly device: string | null;
  readonly routes: readonly TunnelRoute[];
}

interface FoundRoute {
  readonly dst?: string;
  readonly dev?: string;
  readonly gateway?: string;
  readonly metrics?: readonly { readonly mtu?: number }[];
}

interface FoundRule {
  readonly priority?: number;
  readonly src?: string;
  readonly srclen?: number;
}

/** Returns a block without `/32`, as iproute2 prints it. */
const bare = (block: string): string => block.replace(/\/32$/, "");

interface Route {
  readonly text: string;
  readonly dev: string;
  readonly mtu: number;
}

function desiredRoutes({ device, routes }: Routing, nextHop: string): Map<string, Route> {
  const out = device === null ? nextHop : `dev ${device}`;
  const dev = /\bdev (\S+)/.exec(out)?.[1] ?? "";
  const desired = new Map<string, Route>();
  for (const { subnet, mtu } of out === "" ? [] : routes) {
    const block = bare(formatAddresses(4, parseAddresses(subnet)));
    desired.set(block, { text: `${block} ${out} mtu ${mtu}`, dev, mtu });
  }
  return desired;
}

/** The actual routes and rules. */
export interface FoundRouting {
  readonly routes: readonly FoundRoute[];
  readonly rules: readonly FoundRule[];
  /** The default route of the main table without its destination, "" if there is none. */
  readonly nextHop: string;
}

/** Renders lines for `ip -batch` that bring the table to the desired state; correct entries are not touched. */
export function renderRoutes(routing: Routing, found: FoundRouting): readonly string[] {
  const { table, cidr, routes } = routing;
  const desired = desiredRoutes(routing, found.nextHop);
  const present = new Map(found.routes.map((route) => [route.dst ?? "", route]));
  const isRight = (block: string, { dev, mtu }: Route): boolean =>
    present.get(block)?.dev === dev && present.get(block)?.metrics?.[0]?.mtu === mtu;
  const changed = [...desired].filter(([block, route]) => !isRight(block, route)).map(([, { text }]) => text);
  const removed = [...present.keys()].filter((block) => !desired.has(block));

  const rules = found.rules.filter(({ priority }) => priority === table);
  const ruled: string[] = [];
  if (routes.length > 0) {
    const [source = "", length = "32"] = formatAddresses(4, parseAddresses(cidr)).split("/");
    const isRight = rules.some(({ src, srclen }) => src === source && (srclen ?? 32) === Number(length));
    if (!isRight) ruled.push(`rule add from ${source}/${length} lookup ${table} pref ${table}`);
  }
  return [
    ...changed.map((route) => `route replace ${route} table ${table}`),
    ...ruled,
    ...removed.map((block) => `route del ${block} table ${table}`),
    ...(routes.length === 0 ? rules.map(() => `rule del pref ${table}`) : []),
  ];
}

/** Reads a table. For a table that was never used, iproute2 reports an error; it counts as empty. */
async function readRoutes(exec: Exec, namespace: string, table: string): Promise<readonly FoundRoute[]> {
  const text = await exec.run(["ip", "-j", "-n", namespace, "route", "show", "table", table]).catch(() => "[]");
  return JSON.parse(text || "[]") as readonly FoundRoute[];
}

/** Removes all routes of the table. A missing namespace is ignored. */
export async function removeRoutes(exec: Exec, namespace: string, table: number): Promise<void> {
  const gone = { namespace, table, cidr: "", device: "", routes: [] };
  await ensureRoutes(exec, gone).catch(() => {});
}

/** Reads the routes and applies the differences in one batch. Resolves to the lines that were run. */
export async function ensureRoutes(exec: Exec, routing: Routing): Promise<readonly string[]> {
  const { namespace, table, device } = routing;
  const [routes, rules, main] = await Promise.all([
    readRoutes(exec, namespace, String(table)),
    exec.run(["ip", "-j", "-n", namespace, "rule", "show"]),
    device === null ? readRoutes(exec, namespace, "main") : [],
  ]);
  const out = main.find(({ dst }) => dst === "default");
  const nextHop = out?.dev === undefined ? "" : `${out.gateway ? `via ${out.gateway} ` : ""}dev ${out.dev} onlink`;
  const lines = renderRoutes(routing, { routes, rules: JSON.parse(rules || "[]") as readonly FoundRule[], nextHop });
  if (lines.length > 0) await exec.run(["ip", "-n", namespace, "-batch", "-"], { stdin: `${lines.join("\n")}\n` });
  return lines;
}
