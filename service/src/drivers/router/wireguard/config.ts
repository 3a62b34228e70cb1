/**
 * Input and output of wg(8): renders the configuration for `wg syncconf`, and parses the lines of `wg show DEVICE dump`.
 */
import type { PeerState, WireguardDevice, WireguardPeer } from "./uapi.ts";

const peerText = ({ publicKey, presharedKey, endpoint, keepAlive, allowed }: WireguardPeer): string =>
  [
    "[Peer]",
    `PublicKey = ${publicKey}`,
    ...(presharedKey === null ? [] : [`PresharedKey = ${presharedKey}`]),
    ...(endpoint === null ? [] : [`Endpoint = ${endpoint}`]),
    `AllowedIPs = ${allowed.join(", ")}`,
    `PersistentKeepalive = ${keepAlive === 0 ? "off" : keepAlive}`,
    "",
  ].join("\n");

/** Renders a configuration file; it contains the private key. */
export const renderConfig = ({ privateKey, listenPort, peers }: WireguardDevice): string =>
  `[Interface]\nPrivateKey = ${privateKey}\nListenPort = ${listenPort}\n\n${peers.map(peerText).join("\n")}`;

const given = (text: string | undefined): string | null =>
  text === undefined || text === "" || text === "(none)" ? null : text;

/** Parses a dump. The first line is the device: private key, public key, port, mark; each further line has eight values of a peer. */
export function parseDump(text: string): WireguardDevice<PeerState> {
  const [own = "", ...others] = text.split("\n").filter((line) => line !== "");
  const [privateKey, , listenPort] = own.split("\t");
  return {
    privateKey: given(privateKey) ?? "",
    listenPort: Number(listenPort) || 0,
    peers: others.map((line) => {
      const [publicKey = "", presharedKey, endpoint, allowed, handshake, received, sent, keepAlive] = line.split("\t");
      return {
        publicKey,
        presharedKey: given(presharedKey),
        endpoint: given(endpoint),
        allowed: given(allowed)?.split(",") ?? [],
        lastHandshake: Number(handshake) * 1000 || null,
        received: Number(received) || 0,
        sent: Number(sent) || 0,
        keepAlive: Number(keepAlive) || 0,
      };
    }),
  };
}
