/**
 * Clients that change records and domains concurrently and keep a ledger: the expected effect of each change, and whether it was confirmed,
 * rejected or unanswered. Each writer owns its names, so at most one change per name is uncertain.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChangesetResult, DnsRecord, Domain } from "@brume/api/dns.ts";
import { type DnsClient, decode, openDnsClient, query } from "../support/dnsclient.ts";
import { dial, type Line, type TestResponse } from "../support/httpsocket.ts";
import type { Process } from "../support/process.ts";
import type { Random } from "../support/random.ts";

/** One changing request. */
export interface Change {
  /** `X-Request-Id`, by which events, audit and history name it. */
  readonly id: string;
  readonly key: string;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly writer: Writer;
  readonly zone: string;
  /** Values of its objects after the change, by name; null: deleted. */
  readonly effect: ReadonlyMap<string, string | null>;
  readonly events: number;
  outcome: "acknowledged" | "refused" | "unknown";
  response: TestResponse | null;
}

/** `zone NAME` with the value `zone`, or `A NAME` with an address. */
export interface Thing {
  readonly value: string;
  readonly id: number;
}

export interface Writer {
  readonly number: number;
  readonly things: Map<string, Thing>;
  count: number;
}

export interface Load {
  readonly writers: readonly Writer[];
  /** Changes since the last check. */
  readonly changes: Change[];
  /** Highest serial of each zone in a response so far. */
  readonly serials: Map<string, number>;
  readonly errors: Error[];
  /** Runs all writers until `isOver` and their connections are lost or closed. */
  burn(process: Process, isOver: () => boolean): Promise<void>;
  /** Confirms a change that had no response. */
  accept(change: Change, response: TestResponse): void;
}

/** The checked fields of a record in a response. */
type Shown = Pick<DnsRecord, "ID" | "HostName">;

export const sharedZone = "shared.test";
const mostRecords = 25;

export const asRequest = (change: Change, process: Process, id = change.id): string =>
  [
    `${change.method} ${change.path} HTTP/1.1`,
    `Authorization: Bearer ${process.token}`,
    `X-Request-Id: ${id}`,
    `Idempotency-Key: ${change.key}`,
    `Content-Length: ${Buffer.byteLength(change.body)}`,
    "",
    change.body,
  ].join("\r\n");

/** Milliseconds after which a query is sent again: the kernel may drop any datagram, and a busy host responds late. */
const resendAfter = 500;

/** Repeats the query until it has a response; resolves to null if `isOver` before, for example because the name server was killed. */
async function askUntil(asker: DnsClient, packet: Uint8Array, isOver: () => boolean): Promise<Uint8Array | null> {
  for (;;) {
    const answer = await asker.exchange(packet, resendAfter);
    if (answer !== null || isOver()) return answer;
  }
}

const never = (): boolean => false;

/** Returns the addresses of a name in the name server, or null if `isOver` before it responds. */
export async function lookUp(asker: DnsClient, name: string, isOver = never): Promise<readonly unknown[] | null> {
  const answer = await askUntil(asker, query(name, 1), isOver);
  if (answer === null) return null;
  const { answers } = decode(answer);
  return answers.map(({ data }) => data);
}

/** Returns the serial of a zone in the name server, or null if it is not served, or if `isOver` before it responds. */
export async function lookUpSerial(asker: DnsClient, zone: string, isOver = never): Promise<number | null> {
  const answer = await askUntil(asker, query(zone, 6), isOver);
  const [soa] = answer === null ? [] : decode(answer).answers;
  return soa === undefined ? null : (soa.data as { serial: number }).serial;
}

/** Creates writers that change domains of their own and the existing domain `sharedZone`, which has this ID. */
export function createLoad(random: Random, size: number, sharedId: number): Load {
  const writers: Writer[] = Array.from({ length: size }, (_, number) => ({ number, things: new Map(), count: 0 }));
  const changes: Change[] = [];
  const serials = new Map<string, number>();
  const errors: Error[] = [];

  function plan(writer: Writer): Change {
    const count = ++writer.count;
    const ownZone = `w${writer.number}.test`;
    const address = `10.${writer.number}.${count >> 8}.${count & 255}`;
    const make = (
      method: string,
      path: string,
      body: object | null,
      zone: string,
      effect: (readonly [string, string | null])[],
      events = effect.length,
    ): Change => ({
      id: `w${writer.number}-${count}-${random.seed}`,
      key: `key-${writer.number}-${count}`,
      method,
      path,
      body: body === null ? "" : JSON.stringify(body),
      writer,
      zone,
      effect: new Map(effect),
      events,
      outcome: "unknown",
      response: null,
    });

    const ownZoneId = writer.things.get(`zone ${ownZone}`)?.id;
    if (ownZoneId === undefined) {
      const effect = [[`zone ${ownZone}`, "zone"] as const, [`A ${ownZone}`, address] as const];
      return make("POST", "/dns", { Name: ownZone, Ip: address }, ownZone, effect, 1);
    }
    const records = [...writer.things].filter(([name]) => name.startsWith("A "));
    const inOwnZone = random.chance(40);
    const [zone, DomainId] = inOwnZone ? [ownZone, ownZoneId] : [sharedZone, sharedId];
    const chosen = random.pick(records);
    const chosenZone = chosen?.[0].endsWith(`.${sharedZone}`) ? sharedZone : ownZone;
    const chosenId = chosenZone === ownZone ? ownZoneId : sharedId;
    const turn = random.below(100);
    if (turn < 5) {
      const deleted = [...writer.things.keys()].filter((name) => name === `zone ${ownZone}` || name.endsWith(ownZone));
      return make(
        "DELETE",
        `/dns/${ownZoneId}`,
        null,
        ownZone,
        deleted.map((name) => [name, null] as const),
        1,
      );
    }
    if (turn < 25 && chosen !== undefined)
      return make("PUT", `/dns/recorda/${chosen[1].id}`, { IP: address }, chosenZone, [[chosen[0], address]]);
    if (chosen !== undefined && (turn < 45 || records.length > mostRecords))
      return make("DELETE", `/dns/${chosenId}/${chosen[1].id}`, null, chosenZone, [[chosen[0], null]]);
    const owner = `r${count}.w${writer.number}.${inOwnZone ? "own" : "in"}.${zone}`;
    if (turn < 75) {
      const body = { DomainId, Name: `${owner}.`, IP: address };
      return make("POST", "/dns/recorda", body, zone, [[`A ${owner}`, address]]);
    }
    const existing = records.filter(([name]) => name.endsWith(`.${zone}`)).slice(0, 2);
    const Changes = [
      ...existing.map(([, { id }]) => ({ Op: "Delete", ID: id })),
      ...["x", "y", "z"].map((part) => ({ Op: "Create", TypeRecord: "A", Name: `${part}${owner}.`, IP: address })),
    ];
    const effect = [
      ...existing.map(([name]) => [name, null] as const),
      ...["x", "y", "z"].map((part) => [`A ${part}${owner}`, address] as const),
    ];
    return make("POST", `/dns/${DomainId}/changeset`, { Changes }, zone, effect);
  }

  function noteSerial(zone: string, serial: number): void {
    serials.set(zone, Math.max(serial, serials.get(zone) ?? 0));
  }

  function accept(change: Change, response: TestResponse): void {
    change.outcome = "acknowledged";
    change.response = response;
    const { things } = change.writer;
    const ids = new Map<string, number>();
    if (change.body !== "") {
      const answer = JSON.parse(response.body) as Shown & Partial<Domain & ChangesetResult>;
      if (answer.Serial !== undefined) noteSerial(change.zone, answer.Serial);
      if (answer.LinkedRecords !== undefined) ids.set(`zone ${change.zone}`, answer.ID);
      const applied = answer.Records ?? [];
      const records: readonly (Shown | null)[] =
        answer.LinkedRecords ?? (applied.length > 0 ? applied.map(({ After }) => After) : [answer]);
      for (const record of records)
        if (record !== null)
          ids.set(`A ${record.HostName === "@" ? change.zone : record.HostName.slice(0, -1)}`, record.ID);
    }
    for (const [name, value] of change.effect) {
      if (value === null) things.delete(name);
      else things.set(name, { value, id: ids.get(name) ?? 0 });
      if (value !== null) assert.ok(ids.has(name), `the answer to ${change.id} shows no ${name}: ${response.body}`);
    }
  }

  /** Checks docs/spec.md#acknowledged-records-are-served and the growth of serials during all other changes. */
  async function checkServed(change: Change, asker: DnsClient, isOver: () => boolean): Promise<void> {
    for (const [name, value] of change.effect) {
      if (!name.startsWith("A ") || isOver()) continue;
      const found = await lookUp(asker, name.slice(2), isOver);
      if (found === null) return;
      assert.deepEqual(found, value === null ? [] : [value], `${name} after ${change.id} was acknowledged`);
      return;
    }
  }

  async function write(writer: Writer, process: Process, asker: DnsClient, isOver: () => boolean) {
    let line: Line | null = null;
    for (;;) {
      const change = plan(writer);
      try {
        line ??= await dial(process.port);
      } catch (error) {
        if (!isOver()) throw error;
        return;
      }
      changes.push(change);
      let response: TestResponse;
      try {
        line.send(asRequest(change, process));
        response = await line.receive();
      } catch (error) {
        line.close();
        if (isOver()) return;
        throw new Error(`no answer to ${change.id}`, { cause: error });
      }
      if (response.headers.get("connection") === "close") {
        line.close();
        line = null;
      }
      if (response.status === 200) {
        accept(change, response);
        await checkServed(change, asker, isOver);
      } else {
        change.outcome = "refused";
        change.response = response;
        assert.equal(response.status, 503, `${change.method} ${change.path} ${change.body}: ${response.body}`);
        await sleep(5);
      }
      if (isOver() && line !== null && random.chance(50)) {
        line.close();
        return;
      }
    }
  }

  return {
    writers,
    changes,
    serials,
    errors,
    accept,
    async burn(process, isOver) {
      const dnsClient = await openDnsClient(process.dns);
      const running = writers.map((writer) =>
        write(writer, process, dnsClient, isOver).catch((error: unknown) => void errors.push(error as Error)),
      );
      const probe = async (): Promise<void> => {
        while (!isOver()) {
          const zone = random.chance(50) ? sharedZone : `w${random.below(size)}.test`;
          const serial = await lookUpSerial(dnsClient, zone, isOver);
          if (serial === null) continue;
          if (serial < (serials.get(zone) ?? 0)) {
            // A response may show a zone that was created again meanwhile: only the serial of the same zone must not decrease.
            const again = await lookUpSerial(dnsClient, zone, isOver);
            if (again !== null && again < (serials.get(zone) ?? 0))
              errors.push(new Error(`the serial of ${zone} went back to ${again} from ${serials.get(zone)}`));
          }
          noteSerial(zone, serial);
          await sleep(2);
        }
      };
      await Promise.all([...running, probe()]).finally(() => dnsClient.close());
    },
  };
}
