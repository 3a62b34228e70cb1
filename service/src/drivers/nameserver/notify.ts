/**
 * NOTIFY to the secondaries (RFC 1996): sent after a change until it is acknowledged, three tries a second apart. One that hears
 * none of them still learns of the change by the refresh of its SOA, so nothing here is kept or persisted.
 */
import { nameOf, textOf } from "./name.ts";
import { type Key, type Signer, sign, verify } from "./tsig.ts";
import { CLASS_IN, HEADER, OPCODE, parseQuery, RCODE } from "./wire.ts";
import { TYPE } from "./zone.ts";

const TRIES = 3;
const WAIT_MS = 1000;
/** Changes of one moment become one NOTIFY, and ten thousand zones are told in portions. */
const TICK_MS = 10;
const PORTION = 100;

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly key: Key | null;
}

export interface Notifier {
  /** The zone of this name has a new serial. */
  changed(zone: string): void;
  /** Takes what the socket received from an address and port. */
  receive(packet: Buffer, host: string, port: number): void;
  close(): void;
}

interface Job {
  readonly zone: string;
  readonly target: Target;
  id: number;
  /** Tries since the last change. */
  tries: number;
  due: number;
  signer: Signer | null;
}

/** `now` gives milliseconds, `random` numbers of 0-65535 for the message ids. */
export function createNotifier(
  targets: readonly Target[],
  send: (message: Buffer, target: Target) => void,
  now: () => number,
  random: () => number,
  warn: (message: string, detail: object) => void,
): Notifier {
  const jobs = new Map<string, Job>();
  let timer: NodeJS.Timeout | null = null;

  const transmit = (job: Job, time: number): void => {
    job.id = random();
    job.tries++;
    job.due = time + WAIT_MS;
    const message = notification(job.zone, job.id);
    const { key } = job.target;
    if (key === null) return send(message, job.target);
    const { bytes, mac } = sign(message, { key, prior: null }, Math.floor(time / 1000));
    job.signer = { key, prior: mac };
    send(bytes, job.target);
  };

  const pump = (): void => {
    timer = null;
    const time = now();
    let left = PORTION;
    for (const [id, job] of jobs) {
      if (job.due > time) continue;
      if (job.tries === TRIES) {
        jobs.delete(id);
        warn("a secondary does not acknowledge NOTIFY", {
          zone: textOf(job.zone),
          host: job.target.host,
          port: job.target.port,
        });
      } else if (left-- > 0) {
        transmit(job, time);
      } else {
        break;
      }
    }
    schedule();
  };

  const schedule = (): void => {
    if (timer === null && jobs.size > 0) timer = setTimeout(pump, TICK_MS);
  };

  return {
    changed(zone) {
      for (const [i, target] of targets.entries()) {
        const job = jobs.get(`${i} ${zone}`);
        if (job === undefined) jobs.set(`${i} ${zone}`, { zone, target, id: -1, tries: 0, due: 0, signer: null });
        else job.tries = 0;
      }
      schedule();
    },
    receive(packet, host, port) {
      const query = parseQuery(packet);
      if (query === null || ((packet[2] as number) & 0xf8) !== 0x80 + (OPCODE.NOTIFY << 3)) return;
      const zone = packet.toString("latin1", HEADER, query.end - 5).toLowerCase();
      for (const [i, target] of targets.entries()) {
        if (target.host !== host || target.port !== port) continue;
        const job = jobs.get(`${i} ${zone}`);
        if (job === undefined || packet.readUInt16BE(0) !== job.id) continue;
        if (job.signer !== null && !isSigned(packet, query.tsig, job.signer, now())) continue;
        // Changed since it was sent: the acknowledgement is of an older serial.
        if (job.tries === 0) job.due = 0;
        else jobs.delete(`${i} ${zone}`);
        const rcode = (packet[3] as number) & 15;
        if (rcode !== RCODE.NOERROR) warn("a secondary refuses NOTIFY", { zone: textOf(zone), host, port, rcode });
      }
    },
    close() {
      if (timer !== null) clearTimeout(timer);
      jobs.clear();
    },
  };
}

function isSigned(packet: Buffer, start: number, signer: Signer, now: number): boolean {
  const keys = new Map([[signer.key.name, signer.key]]);
  return start > 0 && verify(packet, start, keys, Math.floor(now / 1000), signer.prior).state === "good";
}

function notification(zone: string, id: number): Buffer {
  const message = Buffer.alloc(HEADER + zone.length + 5);
  message.writeUInt16BE(id, 0);
  message.writeUInt8((OPCODE.NOTIFY << 3) | 0x04, 2);
  message.writeUInt16BE(1, 4);
  message.write(zone, HEADER, "latin1");
  message.writeUInt16BE(TYPE.SOA, HEADER + zone.length + 1);
  message.writeUInt16BE(CLASS_IN, HEADER + zone.length + 3);
  return message;
}

/** The key of a target by its name among the configured ones. Throws a RangeError when there is none. */
export function keyOf(keys: ReadonlyMap<string, Key>, name: string | undefined): Key | null {
  if (name === undefined) return null;
  const key = keys.get(nameOf(name.replace(/\.$/, "")));
  if (key === undefined) throw new RangeError(`there is no TSIG key "${name}"`);
  return key;
}
