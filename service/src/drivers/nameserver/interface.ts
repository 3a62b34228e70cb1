/**
 * What the service needs of an authoritative name server: data in, data out.
 * A driver holds zones in memory as it was told, answers queries from them, and never asks anybody back.
 * Names are ASCII, absolute, without the final dot (`www.example.com`); the root is `""`. A byte that is no plain character is
 * `\\DDD` (RFC 1035 section 5.1). Owners and targets are sent in the letter case they came in; zones and look-ups know no case.
 */

/**
 * How a field of record data is written. Numbers and addresses are as long as they are; `name` is a domain name, `string` one string of at most
 * 255 bytes, `strings` as many as there are, `text` UTF-8 without a length, `hex` and `base64` bytes without a length.
 */
export type FieldKind =
  | "u8"
  | "u16"
  | "u32"
  | "ipv4"
  | "ipv6"
  | "name"
  | "string"
  | "strings"
  | "text"
  | "hex"
  | "base64";

/** A type of records: its number (RFC 1035 section 3.2.2), and its data field by field. SOA is none: it is part of the zone. */
export interface RecordFormat {
  readonly name: string;
  readonly code: number;
  readonly data: readonly { readonly kind: FieldKind; readonly name: string }[];
}

/** A value per field of the format: a number, a text, or the strings of `strings`, each at most 255 bytes of UTF-8. */
export type RecordData = readonly (number | string | readonly string[])[];

/** All records of one owner and type (RFC 2181 section 5): they share a TTL in seconds. No data means: there is no such set. */
export interface RecordSet {
  readonly owner: string;
  readonly type: RecordFormat;
  readonly ttl: number;
  readonly data: readonly RecordData[];
}

/** Timers of the SOA in seconds (RFC 1035 section 3.3.13); `minimum` is the negative TTL of RFC 2308. */
export interface Soa {
  readonly mname: string;
  readonly rname: string;
  readonly ttl: number;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  readonly minimum: number;
}

/**
 * A step of a zone to `serial`. With `base: null` the sets are the whole zone and replace what was there;
 * else they replace just these sets of the zone at serial `base`. Applied at once: no answer ever mixes two serials.
 */
export interface ZoneChange {
  readonly zone: string;
  readonly base: number | null;
  readonly serial: number;
  readonly soa: Soa;
  readonly sets: readonly RecordSet[];
  /** Whose zone it is, for keys that may transfer the zones of some; 0 if absent. 32 bits, as is `identity`. */
  readonly group?: number;
  /** Another number makes another zone of the same name: a secondary forgets what it knew of the one before. 0 if absent. */
  readonly identity?: number;
}

/** What one zone looks like from outside; counters since the zone was first published to this run of the server. */
export interface ZoneStatus {
  readonly zone: string;
  readonly serial: number;
  readonly queries: number;
  readonly rcodes: Readonly<Record<string, number>>;
}

/** What is known of a secondary that is told of changes. */
export interface SecondaryStatus {
  /** `host:port` */
  readonly address: string;
  /** Whether it answered last; null: it was not asked yet. */
  readonly reachable: boolean | null;
  /** Zones whose serial it has not confirmed, and for how many seconds it has not confirmed the oldest of these. */
  readonly behind: number;
  readonly lag: number;
  /** The last serial that it confirmed, by zone. */
  readonly serials: ReadonlyMap<string, number>;
}

/** The server as a whole. `address` is `host:port` as bound. */
export interface NameserverStatus {
  readonly ready: boolean;
  readonly address: string;
  readonly detail: string;
  readonly zones: readonly ZoneStatus[];
  readonly secondaries: readonly SecondaryStatus[];
  /** Microseconds from packet to answer, 99th percentile of the last minute. */
  readonly p99: number;
}

export interface Nameserver {
  /**
   * Applies the changes in order and resolves, when queries are answered from them, to the serial now served of each zone (0: none).
   * A change whose `base` is not the served serial, or whose `serial` is not newer (RFC 1982), is not applied: the caller sees
   * it by the serial that comes back. Publishing what is served already changes nothing. Rejects when the server is not running or a set cannot be encoded.
   */
  publish(changes: readonly ZoneChange[]): Promise<readonly number[]>;
  /**
   * All zones that are there have been published since the (re)start. Only now does the catalog of zones list them: one that
   * lacks zones would make secondaries delete them.
   */
  loaded(): Promise<void>;
  /** From now on the zone is refused. A zone whose served serial is newer than `serial` stays. Unknown zones are fine. */
  withdraw(zone: string, serial: number): Promise<void>;
  /** Everything at once, so that watching one zone costs as much as watching ten thousand. */
  observe(): Promise<NameserverStatus>;
  /** Called after each (re)start of the server with nothing published, and soon after registering if nothing is yet: publish everything. */
  onStart(listener: () => void): void;
  close(): Promise<void>;
}
