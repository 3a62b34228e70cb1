/**
 * The configuration that the owner of a tunnel gives to the operator of its peer: a complete text in the vendor format of that
 * program or router, for WireGuard also as a QR code. Placeholders mark the secrets, unless they are passed.
 */
import { type PeerDialect, peerDialects, type TunnelPeer, type TunnelType } from "@brume/api/vpn.ts";
import { renderSVG } from "uqr";
import { fieldError, invalidQuery } from "../../../base/error.ts";
import type { TunnelSpec } from "../../../drivers/router/interface.ts";
import { renderPeerConfig } from "../../../drivers/router/model/peerconfig.ts";
import { fillSecrets, type NearEnd, type Secrets } from "../../../drivers/router/model/peertext.ts";

const typeOf = ({ type }: TunnelSpec): TunnelType => (type === "ipsec" ? "IPsec" : "WireGuard");

/** Returns the configuration in the format `peer`, or in the default format of the tunnel's type if `peer` does not support it. */
export function renderConfig(spec: TunnelSpec, near: NearEnd, peer?: PeerDialect): string {
  return renderPeerConfig(spec, near, peer) ?? renderPeerConfig(spec, near) ?? "";
}

/** Returns the configuration as a response body. Throws `query_invalid` if the tunnel's type does not have the format `peer`. */
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
