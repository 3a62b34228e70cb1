/**
 * Renders bandwidth limits as lines for `tc -batch`. Token buckets delay packets instead of dropping them; policing in nftables causes many
 * retransmissions. A network is limited where its packets cross the edge, so that traffic between its servers is not limited. A port is
 * limited in both directions; packets from the server pass an `ifb` device for that.
 */

import type { NetworkSpec, Port } from "../interface.ts";
import { BRIDGE, intakeOf, portOf, UPLINK } from "../model/name.ts";
import type { NamespaceState } from "./snapshot.ts";

/**
 * Renders a token bucket. `burst` covers ten milliseconds at full rate, since tokens that a busy host collects too late are lost, and at
 * least any one packet. `latency` bounds the queue, and so the delay.
 */
function bucket(device: string, mbit: number): string {
  return `qdisc replace dev ${device} root tbf rate ${mbit}mbit burst ${Math.max(20_000, mbit * 1250)} latency 50ms`;
}

/** Keeps an unchanged bucket, because a replaced one starts full. */
function limit(device: string, mbit: number | null, found: NamespaceState | null): string[] {
  const present = found?.rates.get(device) ?? null;
  if (present === mbit) return [];
  return [mbit === null ? `qdisc del dev ${device} root` : bucket(device, mbit)];
}

/** Renders the differences of all limits. `made`: ports with a new device, which has no limit yet. */
export function shapeLines(spec: NetworkSpec, found: NamespaceState | null, made: ReadonlySet<number>): string[] {
  const edge = spec.edgeAddress === null ? [] : [UPLINK, BRIDGE];
  return [
    ...edge.flatMap((device) => limit(device, spec.bandwidth, found?.links.has(device) ? found : null)),
    ...portShapeLines(spec.ports, found, made),
  ];
}

/** Renders the differences of the limits of ports. */
export function portShapeLines(
  ports: readonly Port[],
  found: NamespaceState | null,
  made: ReadonlySet<number>,
): string[] {
  const lines: string[] = [];
  for (const { id, bandwidth } of ports) {
    const [port, intake] = [portOf(id), intakeOf(id)];
    const isNew = made.has(id);
    if (!isNew && !found?.links.has(port)) continue;
    lines.push(...limit(port, bandwidth, isNew ? null : found));
    if (bandwidth === null) {
      // An interrupted change may have removed the queue but not the device; a missing queue cannot be deleted.
      if (!isNew && found?.links.has(intake))
        lines.push(`qdisc replace dev ${port} ingress`, `qdisc del dev ${port} ingress`);
      continue;
    }
    // The bucket of the `ifb` device is set last: if it exists, the redirection to it is complete.
    if (isNew || !found?.rates.has(intake))
      lines.push(
        `qdisc replace dev ${port} ingress`,
        `filter replace dev ${port} parent ffff: protocol all prio 1 handle 800::800 u32 match u32 0 0 action mirred egress redirect dev ${intake}`,
      );
    lines.push(...limit(intake, bandwidth, isNew ? null : found));
  }
  return lines;
}
