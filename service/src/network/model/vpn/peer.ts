/**
 * What the owner of a tunnel gives to whoever runs its far end: a ready configuration in the words of that program or router, and of
 * WireGuard the same as a QR code. Placeholders say where the secrets go, unless they are given.
 */
import { type PeerDialect, peerDialects, type TunnelPeer, type TunnelType } from "@brume/api/vpn.ts";
import { renderSVG } from "uqr";
import { fieldError, invalidQuery } from "../../../base/error.ts";
import type { TunnelSpec } from "../../../drivers/router/interface.ts";
import { renderPeerConfig } from "../../../drivers/router/model/peerconfig.ts";
import { fillSecrets, type NearEnd, type Secrets } from "../../../drivers/router/model/peertext.ts";

const typeOf = ({ type }: TunnelSpec): TunnelType => (type === "ipsec" ? "IPsec" : "WireGuard");

/** The text in this dialect, or where there is none for such a tunnel, in the one of its type. */
export function renderConfig(spec: TunnelSpec, near: NearEnd, peer?: PeerDialect): string {
  return renderPeerConfig(spec, near, peer) ?? renderPeerConfig(spec, near) ?? "";
}

/** Throws `query_invalid` for a dialect that does not fit the tunnel. */
export function describePeer(spec: TunnelSpec, near: NearEnd, peer?: PeerDialect, secrets?: Secrets): TunnelPeer {
  const type = typeOf(spec);
  const dialects: readonly PeerDialect[] = peerDialects[type];
  const dialect = peer ?? peerDialects[type][0];
  if (!dialects.includes(dialect)) {
    const detail = `peer must be one of ${dialects.join(", ")} for a tunnel of type ${type}, not ${dialect}.`;
    throw invalidQuery([fieldError("?peer", "value_not_allowed", detail)]);
  }
  const text = renderConfig(spec, near, dialect);
  const config = secrets === undefined ? text : fillSecrets(text, dialect, secrets);
  return { Peer: dialect, Config: config, Qr: dialect === "wg-quick" ? renderSVG(config) : "" };
}
