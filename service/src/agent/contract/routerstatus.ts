/** Schemas of results about networks. Their fields are described at the types of the same names in `drivers/router/interface.ts`. */
import { type Static, Type } from "typebox";
import { boolean, count, many, measure, nullable, oneOf, only, prose, time } from "./values.ts";

const Count = { packets: measure(), bytes: measure() };

const TunnelStatus = only({
  id: count(),
  state: oneOf(["up", "connecting", "down", "disabled", "unknown"]),
  reason: nullable(
    only({
      fault: oneOf([
        "authentication_failed",
        "no_proposal_chosen",
        "selectors_refused",
        "peer_unreachable",
        "engine_unavailable",
      ]),
      detail: prose(),
    }),
  ),
  establishedAt: nullable(time()),
  bytesIn: measure(),
  bytesOut: measure(),
  lastSeen: nullable(time()),
  localSubnets: many(prose()),
  peerSubnets: many(prose()),
  peerAddress: prose(),
  proposal: prose(),
});

/**
 * State of a port: id, attached, carrier, packets and bytes sent, packets and bytes received. An observation has a row for each server, and
 * reading objects would take five times as long.
 */
export const PortStatusRow = Type.Tuple([count(), boolean(), boolean(), measure(), measure(), measure(), measure()]);
/** State of a port as it is sent. */
export type PortStatusRow = Static<typeof PortStatusRow>;

const NetworkStatus = only({
  id: count(),
  generation: count(),
  complete: boolean(),
  missing: many(prose()),
  rules: many(only({ ...Count, lastHit: nullable(time()) })),
  rest: only(Count),
  spoofed: only(Count),
  overLimit: only(Count),
  ports: many(PortStatusRow),
  tunnels: many(TunnelStatus),
  occupiedPorts: many(count()),
  sent: only(Count),
  received: only(Count),
});

/** State of all networks on the host. */
export const RouterStatus = only({ ready: boolean(), detail: prose(), networks: many(NetworkStatus) });
