/**
 * Sends NOTIFY to secondaries (RFC 1996), repeated with growing pauses until each has confirmed the new serial: by a completed transfer, by
 * the serial in its IXFR query, or by its response to a SOA query. An acknowledged NOTIFY alone confirms nothing. The state is kept in
 * memory only: after a start all zones are announced again.
 */

import { plainAddress } from "../../../base/address.ts";
import { type Clock, steadyOf } from "../../../base/clock.ts";
import { isNewer, TYPE, type Zone } from "../builtin/zone.ts";
import { CLASS_IN, HEADER, OPCODE, parseQuery, RCODE, soaSerial } from "../wire/message.ts";
import { nameOf, textOf } from "../wire/name.ts";
import { createSecondary, findSecondary, type Job, type Secondary, type SecondaryState } from "./secondary.ts";
import { inScope, type Signer, sign, type TsigKey, verify } from "./tsig.ts";

/** First and longest pause, and the time after a change when its notifications end; the secondary refreshes much earlier by itself. */
const PAUSE_MS = { first: 1000, most: 300_000 };
const PATIENCE_MS = 24 * 3_600_000;
/** Milliseconds from an acknowledgement to the SOA query. */
const PROBE_MS = 500;
/** Milliseconds without confirmation after which a lagging secondary is logged. */
const LAG_MS = 60_000;
/** Changes within `TICK_MS` are one NOTIFY. Per tick, at most `PORTION` zones are announced to a secondary. */
const TICK_MS = 10;
const PORTION = 100;

/** A secondary that receives NOTIFY, and the key that signs them. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly key: TsigKey | null;
}

/** A zone to announce: name, owner and serial. */
export type Announcement = Pick<Zone, "name" | "group"> & { readonly serial: number };

/** Keeps secondaries informed of changes. */
export interface Notifier {
  /** Announces a new serial. `isCatalog`: to all targets, regardless of the scope of their keys. */
  changed(zone: Announcement, isCatalog?: boolean): void;
  /** Ends all notifications for a removed zone. */
  gone(name: string): void;
  /** Handles a packet from a NOTIFY socket. */
  receive(packet: Buffer, host: string, port: number): void;
  /** Records that a client at this address, which signed with this key or none, has the serial, or only queried it. */
  noteClient(name: string, serial: number, has: "has" | "queried", address: string, key: TsigKey | null): void;
  observe(): readonly SecondaryState[];
  close(): void;
}

/**
 * Creates the notifier. `random` returns message ids, 0 to 65535. `ahead` is called when a secondary has a newer serial than the announced
 * one.
 */
export function createNotifier(
  targets: readonly Target[],
  send: (message: Buffer, target: Target) => void,
  clock: Clock,
  random: () => number,
  log: (level: "info" | "warn", message: string, detail: object) => void,
  ahead: (name: string, serial: number) => void = () => {},
): Notifier {
  // Pauses do not depend on the clock of the host, which can be set; only signatures contain its time.
  const now = (): number => steadyOf(clock);
  const secondaries = targets.map(createSecondary);
  let timer: NodeJS.Timeout | null = null;
  let planned = Number.POSITIVE_INFINITY;

  const signed = (message: Buffer, { key }: Target): [Buffer, Signer | null] => {
    if (key === null) return [message, null];
    const { bytes, mac } = sign(message, { key, prior: null }, Math.floor(clock.now() / 1000));
    return [bytes, { key, prior: mac }];
  };

  const notify = (secondary: Secondary, job: Job, time: number): void => {
    if (job.sentAt > 0 && secondary.respondedAt < job.sentAt) secondary.reachable = false;
    // It does not respond to SOA queries, but it has queried this serial itself: there is no better confirmation.
    if (job.tries > 0 && job.queried === job.serial && job.probes > 0) return confirm(secondary, job.name, job.serial);
    job.id = random();
    job.sentAt = time;
    job.due = time + Math.min(PAUSE_MS.first * 2 ** job.tries++, PAUSE_MS.most);
    const [bytes, signer] = signed(request(job.name, job.id, OPCODE.NOTIFY), secondary.target);
    job.signer = signer;
    send(bytes, secondary.target);
  };

  const probe = (secondary: Secondary, job: Job): void => {
    job.probeId = random();
    job.probeDue = Number.POSITIVE_INFINITY;
    job.probes++;
    const [bytes, signer] = signed(request(job.name, job.probeId, OPCODE.QUERY), secondary.target);
    job.probeSigner = signer;
    send(bytes, secondary.target);
  };

  const confirm = (secondary: Secondary, name: string, serial: number): void => {
    if (!secondary.confirm(name, serial) || secondary.jobs.size > 0 || !secondary.isLagLogged) return;
    secondary.isLagLogged = false;
    log("info", "A secondary has caught up", { secondary: secondary.address });
  };

  const watch = (secondary: Secondary, time: number): void => {
    const oldest = secondary.oldest();
    if (secondary.isLagLogged || oldest === null || time - oldest.since < LAG_MS) return;
    secondary.isLagLogged = true;
    const isRefused = oldest.rcode !== null && oldest.rcode !== RCODE.NOERROR;
    const refusal = isRefused ? `it refuses NOTIFY with response code ${oldest.rcode}` : null;
    const reason = secondary.reachable
      ? (refusal ?? "it responds, but does not serve the new serial")
      : "it does not respond";
    log("warn", "A secondary lags", {
      secondary: secondary.address,
      zones: secondary.jobs.size,
      zone: textOf(oldest.name),
      seconds: Math.floor((time - oldest.since) / 1000),
      reason,
    });
  };

  const pump = (): void => {
    timer = null;
    const time = now();
    let next = Number.POSITIVE_INFINITY;
    for (const secondary of secondaries) {
      let left = PORTION;
      for (const job of secondary.jobs.values()) {
        // The secondary stays behind in metrics.
        if (time - job.changed > PATIENCE_MS) continue;
        if (left > 0 && Math.min(job.probeDue, job.due) <= time) {
          left--;
          if (job.probeDue <= time) probe(secondary, job);
          else notify(secondary, job, time);
        }
        if (secondary.jobs.has(job.name)) next = Math.min(next, job.due, job.probeDue);
      }
      watch(secondary, time);
    }
    plan(next - time);
  };

  const plan = (ms: number): void => {
    if (ms === Number.POSITIVE_INFINITY) return;
    const at = now() + Math.max(ms, TICK_MS);
    if (timer !== null && planned <= at) return;
    if (timer !== null) clearTimeout(timer);
    planned = at;
    timer = setTimeout(pump, at - now());
  };

  /** Returns the job to which a packet responds, or null. A response to a signed message must be signed. */
  const jobOf = (packet: Buffer, host: string, port: number): [Secondary, Job, "notify" | "probe", number] | null => {
    const query = parseQuery(packet);
    const head = (packet[2] as number) & 0xf8;
    const kind = head === 0x80 + (OPCODE.NOTIFY << 3) ? "notify" : head === 0x80 ? "probe" : null;
    if (query === null || kind === null) return null;
    const name = packet.toString("latin1", HEADER, query.end - 5).toLowerCase();
    for (const secondary of secondaries) {
      const job = secondary.jobs.get(name);
      if (secondary.target.host !== host || secondary.target.port !== port || job === undefined) continue;
      if (packet.readUInt16BE(0) !== (kind === "notify" ? job.id : job.probeId)) continue;
      const signer = kind === "notify" ? job.signer : job.probeSigner;
      if (signer === null || isSigned(packet, query.tsig, signer, clock.now()))
        return [secondary, job, kind, query.end];
    }
    return null;
  };

  return {
    changed(zone, isCatalog = false) {
      for (const secondary of secondaries) {
        const scope = secondary.target.key?.scope ?? null;
        if (isCatalog || scope === null || inScope(scope, zone)) secondary.expect(zone.name, zone.serial, now());
      }
      plan(TICK_MS);
    },
    gone(name) {
      for (const secondary of secondaries) secondary.forget(name);
    },
    receive(packet, host, port) {
      const found = jobOf(packet, host, port);
      if (found === null) return;
      const [secondary, job, kind, end] = found;
      const time = now();
      const rcode = (packet[3] as number) & 15;
      secondary.reachable = true;
      secondary.respondedAt = time;
      if (kind === "probe") {
        job.probeId = -1;
        const serial = rcode === RCODE.NOERROR ? soaSerial(packet, end) : null;
        if (serial === null) return;
        const isAhead = isNewer(serial, job.serial);
        confirm(secondary, job.name, serial);
        if (isAhead) ahead(job.name, serial);
        return;
      }
      job.id = -1;
      job.rcode = rcode;
      job.probeDue = time + PROBE_MS;
      // Changed since it was sent: the acknowledgement is of an older serial.
      if (job.tries === 0) job.due = time;
      plan(job.tries === 0 ? 0 : PROBE_MS);
    },
    noteClient(name, serial, has, address, key) {
      const secondary = findSecondary(secondaries, plainAddress(address), key);
      if (secondary === null) return;
      secondary.reachable = true;
      secondary.respondedAt = now();
      const job = secondary.jobs.get(name);
      if (has === "has") confirm(secondary, name, serial);
      else if (job !== undefined) job.queried = serial;
    },
    observe() {
      const time = now();
      return secondaries.map(({ address, reachable, jobs, confirmed, oldest }): SecondaryState => {
        const lag = Math.max(0, time - (oldest()?.since ?? time)) / 1000;
        return { address, reachable, behind: jobs.size, lag, confirmed };
      });
    },
    close() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      for (const { jobs } of secondaries) jobs.clear();
    },
  };
}

function isSigned(packet: Buffer, start: number, signer: Signer, now: number): boolean {
  const keys = new Map([[signer.key.name, signer.key]]);
  return start > 0 && verify(packet, start, keys, Math.floor(now / 1000), signer.prior).state === "good";
}

/** Renders a NOTIFY or a query for the SOA of the zone. */
function request(zone: string, id: number, opcode: number): Buffer {
  const message = Buffer.alloc(HEADER + zone.length + 5);
  message.writeUInt16BE(id, 0);
  message.writeUInt8((opcode << 3) | (opcode === OPCODE.NOTIFY ? 0x04 : 0), 2);
  message.writeUInt16BE(1, 4);
  message.write(zone, HEADER, "latin1");
  message.writeUInt16BE(TYPE.SOA, HEADER + zone.length + 1);
  message.writeUInt16BE(CLASS_IN, HEADER + zone.length + 3);
  return message;
}

/** Returns a key by its name, null without a name. Throws a RangeError for an unknown name. */
export function keyOf(keys: ReadonlyMap<string, TsigKey>, name: string | undefined): TsigKey | null {
  if (name === undefined) return null;
  const key = keys.get(nameOf(name.replace(/\.$/, "")));
  if (key === undefined) throw new RangeError(`there is no TSIG key "${name}"`);
  return key;
}
