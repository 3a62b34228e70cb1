/**
 * Bandwidth as lines for `tc -batch`: token buckets, which smooth instead of dropping (policing in nftables costs many
 * retransmissions). A network is limited where its packets cross the edge, so servers among themselves are not slowed; a port is
 * limited both ways, what comes from the server by sending it through an `ifb` device first.
 */

import type { NetworkSpec } from "../interface.ts";
import { BRIDGE, intakeOf, portOf, UPLINK } from "../model/name.ts";
import type { NamespaceState } from "./snapshot.ts";

/**
 * Enough for ten milliseconds at full rate, since what a busy machine comes too late for is lost, and for any one packet. `latency`
 * bounds the queue, hence the delay.
 */
function bucket(device: string, mbit: number): string {
  return `qdisc replace dev ${device} root tbf rate ${mbit}mbit burst ${Math.max(20_000, mbit * 1250)} latency 50ms`;
}

/** A rate that has not been touched is left alone, since a replaced bucket starts full. */
function limit(device: string, mbit: number | null, found: NamespaceState | null): string[] {
  const present = found?.rates.get(device) ?? null;
  if (present === mbit) return [];
  return [mbit === null ? `qdisc del dev ${device} root` : bucket(device, mbit)];
}

/** `made`: ports whose device is new, and so without any limit yet. */
export function shapeLines(spec: NetworkSpec, found: NamespaceState | null, made: ReadonlySet<number>): string[] {
  const edge = spec.edgeAddress === null ? [] : [UPLINK, BRIDGE];
  const lines = edge.flatMap((device) => limit(device, spec.bandwidth, found?.links.has(device) ? found : null));
  for (const { id, bandwidth } of spec.ports) {
    const [port, intake] = [portOf(id), intakeOf(id)];
    const isNew = made.has(id);
    if (!isNew && !found?.links.has(port)) continue;
    lines.push(...limit(port, bandwidth, isNew ? null : found));
    if (bandwidth === null) {
      if (!isNew && found?.links.has(intake)) lines.push(`qdisc del dev ${port} ingress`);
      continue;
    }
    // The bucket of the intake is set last: where it is, the way to it is complete.
    if (isNew || !found?.rates.has(intake))
      lines.push(
        `qdisc replace dev ${port} ingress`,
        `filter replace dev ${port} parent ffff: protocol all prio 1 handle 800::800 u32 match u32 0 0 action mirred egress redirect dev ${intake}`,
      );
    lines.push(...limit(intake, bandwidth, isNew ? null : found));
  }
  return lines;
}
