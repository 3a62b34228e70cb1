/**
 * What strongSwan is told: the daemon's own configuration as text, each tunnel as VICI messages. Pure, so that the words that
 * make tunnels come up, or not, are read in one place and tested as text. Shared keys go through VICI only, never to the disk.
 */
import { isIPv4 } from "node:net";
import type { IpsecTunnel } from "../interface.ts";
import { life } from "../model/peertext.ts";
import { espProposal, ikeProposal } from "../model/proposals.ts";
import type { Message } from "./vici.ts";

const plugins =
  "random nonce openssl aes sha1 sha2 hmac kdf pem x509 revocation constraints pubkey pkcs1 gmp curve25519 gcm aesni";

export interface DaemonConfig {
  /** Path of the VICI socket, at most 107 bytes. */
  readonly socket: string;
  /** ESP by the kernel; else by the daemon itself (libipsec) through the device `ipsec0`. */
  readonly kernelEsp: boolean;
}

/**
 * strongswan.conf(5) of a daemon in a network's namespace. With libipsec nine of its threads are always busy, and with eight it
 * takes connections on its socket and never answers. A peer is called every 1.5 seconds, so that it has its tunnel soon after it is there,
 * and given up 12 seconds after the first unanswered message. As many
 * tunnels as a network has by default may call at once from one address: they are asked for cookies, but not dropped. Routes are ours
 * (`tunnelroutes.ts`): with the kernel's ESP charon would send to the peer's networks also what no tunnel covers.
 */
export function renderDaemon({ socket, kernelEsp }: DaemonConfig): string {
  if (/["\\\n]/.test(socket)) throw new Error("the path of a socket holds quotes or backslashes");
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

export const connectionName = (id: number): string => `t-${id}`;

/** The tunnel of a connection's name, or null for `(unnamed)` and whatever is not ours. */
export function tunnelOf(connection: string): number | null {
  const found = /^t-(\d+)$/.exec(connection);
  return found === null ? null : Number(found[1]);
}

/**
 * An IKE identity in strongSwan's spelling, its type said aloud: left to guess, it would take a text with `=` for a
 * distinguished name and `0.0.0.0` for anybody.
 */
export function identityOf(identity: string): string {
  if (isIPv4(identity)) return identity;
  return identity.includes("@") ? `email:${identity}` : `fqdn:${identity}`;
}

export interface Child {
  readonly name: string;
  readonly local: readonly string[];
  readonly peer: readonly string[];
}

/** IKEv2 carries lists of blocks in one child; in IKEv1 each pair of blocks needs its own (RFC 2409 section 5.5). */
export function childrenOf(tunnel: IpsecTunnel): readonly Child[] {
  const { id, localSubnets, peerSubnets } = tunnel;
  if (tunnel.ikeVersion === 2) return [{ name: `c-${id}`, local: localSubnets, peer: peerSubnets }];
  return localSubnets.flatMap((local, row) =>
    peerSubnets.map((peer, column) => ({ name: `c-${id}-${row}-${column}`, local: [local], peer: [peer] })),
  );
}

/**
 * For `load-conn`. `peer` is the address that the tunnel's peer has now; null: anybody may call. Nothing starts by itself: who
 * loads it initiates, and again when the peer has closed it, so that a peer that closes at once is not called in a circle.
 */
export function renderConnection(tunnel: IpsecTunnel, edgeAddress: string, peer: string | null): Message {
  const children = childrenOf(tunnel).map(({ name, local, peer }): [string, Message] => [
    name,
    {
      // A key is replaced a little before its end, at a moment that differs from peer to peer.
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

/** For `load-shared`; `id` is how it is found again. */
export function renderSecret(tunnel: IpsecTunnel, id: string): Message {
  const owners = [identityOf(tunnel.localIdentity), identityOf(tunnel.peerIdentity)];
  return { id, type: "IKE", data: tunnel.sharedKey, owners };
}
