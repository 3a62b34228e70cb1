/**
 * The driver interface for the authoritative name server: data in, data out. A driver holds the published zones in memory, responds to
 * queries from them, and never calls the service for data.
 * Names are ASCII, absolute, without the final dot (`www.example.com`); the root is `""`. A byte that is not printable ASCII is `\\DDD`
 * (RFC 1035 section 5.1). Responses keep the letter case of owners and targets; zones and lookups ignore case.
 */

/**
 * The encoding of one field of record data. Numbers and addresses have a fixed size. `name` is a domain name, `string` one string of at
 * most 255 bytes, `strings` any number of them, `text` UTF-8 without a length, `hex` and `base64` bytes without a length. The kinds are those
 * of the record specs; `dns/model/kind.ts` compares both lists when it is compiled.
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

/** A record type: its number (RFC 1035 section 3.2.2) and its fields. SOA has no format: it is part of the zone. */
export interface RecordFormat {
  readonly name: string;
  readonly code: number;
  readonly data: readonly { readonly kind: FieldKind; readonly name: string }[];
}

/**
 * The data of one record, one value per field of the format: a number, a text, or for `strings` a list of strings of at most 255 bytes of
 * UTF-8.
 */
export type RecordData = readonly (number | string | readonly string[])[];

/** All records of one owner and type (RFC 2181 section 5); they share a TTL in seconds. Empty `data` removes the set. */
export interface RecordSet {
  readonly owner: string;
  readonly type: RecordFormat;
  readonly ttl: number;
  readonly data: readonly RecordData[];
}

/** The SOA of a zone; timers in seconds (RFC 1035 section 3.3.13). `minimum` is the negative TTL of RFC 2308. */
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
 * A change of a zone to `serial`. With `base: null` the sets are the complete zone and replace its contents; otherwise they replace these
 * sets of the zone at serial `base`. A change is atomic: no response mixes two serials.
 */
export interface ZoneChange {
  readonly zone: string;
  readonly base: number | null;
  readonly serial: number;
  readonly soa: Soa;
  readonly sets: readonly RecordSet[];
  /** Number of the owner, for transfer keys that are limited to some owners; 0 by default. 32 bits, as is `identity`. */
  readonly group?: number;
  /** Distinguishes zones that had the same name one after the other: with a new number, secondaries discard the old zone. 0 by default. */
  readonly identity?: number;
}

/**
 * The state of one zone. Counters start when the zone is first published to this run of the server; `rcodes` counts responses by name of
 * the response code.
 */
export interface ZoneStatus {
  readonly zone: string;
  readonly serial: number;
  readonly queries: number;
  readonly rcodes: Readonly<Record<string, number>>;
}

/** The state of a secondary name server that gets NOTIFY messages. */
export interface SecondaryStatus {
  /** `host:port` */
  readonly address: string;
  /** Whether it responded to the last message; null: no message was sent yet. */
  readonly reachable: boolean | null;
  /** Number of zones whose serial it has not confirmed, and how long the oldest of them has been unconfirmed, in seconds. */
  readonly behind: number;
  readonly lag: number;
  /** The last serial that it confirmed, by zone. */
  readonly serials: ReadonlyMap<string, number>;
}

/** The state of the server. `address` is `host:port` as bound. */
export interface NameserverStatus {
  readonly ready: boolean;
  readonly address: string;
  readonly detail: string;
  readonly zones: readonly ZoneStatus[];
  readonly secondaries: readonly SecondaryStatus[];
  /** 99th percentile of the time from query to response in the last minute, in microseconds. */
  readonly p99: number;
}

/** Zones that an earlier run has saved. `mark` is the text that was saved with them. */
export interface SavedState {
  readonly mark: string;
  readonly zones: readonly Required<Pick<ZoneChange, "zone" | "serial" | "group" | "identity">>[];
}

/** An authoritative name server. Implemented by `builtin/builtin.ts` and, without sockets, by `sim/sim.ts`. */
export interface Nameserver {
  /**
   * Applies the changes in order. Resolves, as soon as queries get the new data, to the serial now served for each change (0: zone
   * unknown). A change is not applied if its `base` is not the served serial or its `serial` is not newer (RFC 1982); the returned serial
   * shows it. Publishing served data again changes nothing. Rejects when the server is not running or a set cannot be encoded.
   */
  publish(changes: readonly ZoneChange[]): Promise<readonly number[]>;
  /**
   * Reports that all zones were published after a start or restart. From then on the catalog zone lists them; an incomplete catalog would
   * make secondaries delete zones.
   */
  loaded(): Promise<void>;
  /** Returns the zones that an earlier run has saved. They are not served until `adopt`. Null: there are none. */
  saved(): Promise<SavedState | null>;
  /** Serves these saved zones, except those whose served serial is as new. All others are forgotten. */
  adopt(zones: readonly string[]): Promise<void>;
  /**
   * Saves the served zones for the next start, with a mark of the caller. Null: the saved zones are deleted. Rejects if they cannot be
   * written; the earlier ones may then remain.
   */
  save(mark: string | null): Promise<void>;
  /**
   * Removes the zone, so that queries for it are refused. A zone whose served serial is newer than `serial` stays. Unknown zones are
   * ignored.
   */
  withdraw(zone: string, serial: number): Promise<void>;
  /** Returns the state of the server and all zones in one call. */
  observe(): Promise<NameserverStatus>;
  /**
   * Registers a listener for each start or restart of the server with no zones. The listener must publish all zones. It is also called soon
   * after registration if nothing was published yet.
   */
  onStart(listener: () => void): void;
  /** Stops the server. */
  close(): Promise<void>;
}
