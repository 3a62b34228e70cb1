/**
 * Renders strongSwan's configuration: the daemon's own as text, each tunnel as VICI messages. Pure functions, so that all parameters are in
 * one place and can be tested as text. Shared keys go through VICI only, never to the disk.
 */
import { isIPv4 } from "node:net";
import type { IpsecTunnel } from "../interface.ts";
import { life } from "../model/peertext.ts";
import { espProposal, ikeProposal } from "../model/proposals.ts";
import type { Message } from "./vici.ts";

const plugins =
  "random nonce openssl aes sha1 sha2 hmac kdf pem x509 revocation constraints pubkey pkcs1 gmp curve25519 gcm aesni";

/** Parameters of `renderDaemon`. */
export interface DaemonConfig {
  /** Path of the VICI socket, at most 107 bytes. */
  readonly socket: string;
  /** ESP in the kernel; otherwise in the daemon (libipsec) with the device `ipsec0`. */
  readonly kernelEsp: boolean;
}

/**
 * Renders strongswan.conf(5) of a daemon in a network's namespace. With libipsec nine of its threads are always busy; with only eight it
 * accepts connections on its socket and never responds. A message is repeated every 1.5 seconds, so that a tunnel is up soon after its peer
 * is available, and the attempt fails 12 seconds after the first. As many tunnels as a network has by default may connect at once from one
 * address: they get cookie requests, but are not dropped. The driver adds routes itself (`tunnelroutes.ts`): with ESP in the kernel charon
 * would also route packets to the peer's networks that no tunnel covers.
 */
export function renderDaemon({ socket, kernelEsp }: DaemonConfig): string {
  if (/["\\\n]/.test(socket))
    throw new Error(
      `the path of the VICI socket contains quotes, backslashes or line breaks: ${JSON.stringify(socket)}`,
    );
  return `charon-systemd {
  load = ${plugins} ${kernelEsp ? "" : "kernel-libipsec "}kernel-netlink socket-default vici
  threads = 16
  block_threshold = 50
  retransmit_tries = 7
  retransmit_timeout = 1.5
  retransmit_base = 1.0
  install_virtual_ip = no
  install_routes = no
  plugins {
    vici {
      socket = "unix://${socket}"
    }
    kernel-libipsec {
      allow_peer_ts = yes
    }
  }
  journal {
    default = -1
  }
  syslog {
    daemon {
      default = -1
    }
    auth {
      default = -1
    }
  }
}
`;
}

/** Returns the name of a tunnel's connection. */
export const connectionName = (id: number): string => `t-${id}`;

/** Returns the tunnel id in a connection's name, or null for `(unnamed)` and foreign names. */
export function tunnelOf(connection: string): number | null {
  const found = /^t-(\d+)$/.exec(connection);
  return found === null ? null : Number(found[1]);
}

/**
 * Returns an IKE identity in strongSwan's syntax with an explicit type. Without it strongSwan takes a text with `=` for a distinguished
 * name and `0.0.0.0` for any identity.
 */
export function identityOf(identity: string): string {
  if (isIPv4(identity)) return identity;
  return identity.includes("@") ? `email:${identity}` : `fqdn:${identity}`;
}

/** A child SA of a tunnel: its name and its blocks. */
export interface Child {
  readonly name: string;
  readonly local: readonly string[];
  readonly peer: readonly string[];
}

/**
 * Returns the child SAs of a tunnel. IKEv2 supports lists of blocks in one child; IKEv1 needs a child for each pair of blocks (RFC 2409
 * section 5.5).
 */
export function childrenOf(tunnel: IpsecTunnel): readonly Child[] {
  const { id, localSubnets, peerSubnets } = tunnel;
  if (tunnel.ikeVersion === 2) return [{ name: `c-${id}`, local: localSubnets, peer: peerSubnets }];
  return localSubnets.flatMap((local, row) =>
    peerSubnets.map((peer, column) => ({ name: `c-${id}-${row}-${column}`, local: [local], peer: [peer] })),
  );
}

/**
 * Renders the message for `load-conn`. `peer` is the current address of the peer; null: any address may connect. charon starts nothing by
 * itself: `load.ts` initiates, also after the peer has closed the tunnel, so that a peer that closes at once causes no loop.
 */
export function renderConnection(tunnel: IpsecTunnel, edgeAddress: string, peer: string | null): Message {
  const children = childrenOf(tunnel).map(({ name, local, peer }): [string, Message] => [
    name,
    {
      // A key is replaced shortly before its end, at a time that differs between peers.
      local_ts: local,
      remote_ts: peer,
      esp_proposals: [espProposal(tunnel)],
      rekey_time: `${life.esp - 300}s`,
      rand_time: "180s",
      life_time: `${life.esp}s`,
      start_action: "none",
      dpd_action: tunnel.peer === null ? "clear" : "restart",
      close_action: "none",
    },
  ]);
  return {
    [connectionName(tunnel.id)]: {
      version: String(tunnel.ikeVersion),
      local_addrs: [edgeAddress],
      remote_addrs: [peer ?? "%any"],
      proposals: [ikeProposal(tunnel)],
      rekey_time: `${life.ike - 1800}s`,
      rand_time: "900s",
      over_time: "1800s",
      dpd_delay: "10s",
      encap: "yes",
      mobike: "no",
      keyingtries: "0",
      unique: "replace",
      "local-1": { auth: "psk", id: identityOf(tunnel.localIdentity) },
      "remote-1": { auth: "psk", id: identityOf(tunnel.peerIdentity) },
      children: Object.fromEntries(children),
    },
  };
}

/** Renders the message for `load-shared`; `id` identifies the key later. */
export function renderSecret(tunnel: IpsecTunnel, id: string): Message {
  const owners = [identityOf(tunnel.localIdentity), identityOf(tunnel.peerIdentity)];
  return { id, type: "IKE", data: tunnel.sharedKey, owners };
}
