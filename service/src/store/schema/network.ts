/** Tables of networks, links and tunnels. Part of `../schema.ts`. */
import type { Generated } from "kysely";

/** Public, private and shared networks. */
export interface NetworkTable {
  id: Generated<number>;
  /** Null: the shared network of its location. */
  project_id: number | null;
  kind: "public" | "shared" | "private";
  name: string;
  state: "New" | "Active" | "Deleting";
  location: string;
  /** The block, each address as 8 hexadecimal digits. */
  first: string;
  last: string;
  gateway: string | null;
  /** Address of the edge, outside of the block. */
  edge: string | null;
  /** First address of the /64, 32 hexadecimal digits; null: no IPv6. */
  first6: string | null;
  is_dhcp: number;
  bandwidth: number;
  /** JSON of the active rule set. */
  firewall: string;
  /** JSON of the last confirmed rule set; null: the active one is confirmed. */
  fallback: string | null;
  confirm_by: number | null;
  /** Sealed private key of the edge; its public key. */
  wireguard: Uint8Array | null;
  wireguard_public: string | null;
  /** UDP port of the edge; null until it has a key. */
  wireguard_port: number | null;
  /** JSON: addresses at which peers reach the edge, by address of the peer; null: the edge's own address. */
  outside: string | null;
  generation: number;
  applied: number;
  /** JSON of the last error of applying. */
  error: string | null;
  created: number;
  labels: string;
  version: number;
}

/** Address blocks that are not allocated again yet. */
export interface RetiredBlockTable {
  id: Generated<number>;
  first: string;
  last: string;
  until: number;
}

/** Free addresses of the pools, as blocks of 2^`bits` addresses, each aligned to its size. */
export interface FreeBlockTable {
  /** First and last address of the part of a pool that they are in. */
  area: string;
  first: string;
  bits: number;
}

/** Links between servers and networks. */
export interface LinkTable {
  id: Generated<number>;
  network_id: number;
  server_id: number;
  /** Host name that DHCP sends. */
  host_name: string;
  ip: string;
  /** Mbit/s. */
  bandwidth: number;
  state: "New" | "Active";
  created: number;
}

/** VPN tunnels. */
export interface TunnelTable {
  id: Generated<number>;
  network_id: number;
  /** Position in the list, from 0. */
  place: number;
  /** JSON without secrets. */
  spec: string;
  /** Sealed. */
  shared_key: Uint8Array | null;
  /** Generation of the network that added it. */
  generation: number;
  is_up: number;
  labels: string;
}

/** Taken addresses of a network, by block of 256 addresses. */
export interface AddressCountTable {
  network_id: number;
  /** First six digits of the addresses. */
  block: string;
  taken: number;
}
