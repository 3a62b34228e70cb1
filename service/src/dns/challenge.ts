/**
 * TXT records at `_acme-challenge` for the certificate of the API itself, in a domain of any project. They are records as any other, so
 * secondaries receive them and the history shows them. Their label marks them, so that those which a crash left are found and deleted.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Nameserver } from "../drivers/nameserver/interface.ts";
import { append } from "../engine/event.ts";
import type { Store, Tx } from "../store/db.ts";
import { type Applied, applyChanges, showChange } from "./apply.ts";
import type { RecordChange } from "./model/change.ts";

import { readRecord, type StoredRecord } from "./model/record.ts";
import { servedOwner, sortKey } from "./model/served.ts";
import type { ZonePublisher } from "./publisher.ts";
import * as table from "./table.ts";

/** Presents challenges in the name server. Names are ASCII in lower case, without `*.`. */
export interface ChallengeRecords {
  /** Returns whether a domain of this service contains the name. */
  isHosted(name: string): Promise<boolean>;
  /**
   * Creates the TXT records, and resolves when this name server and its secondaries serve them, the latter for at most `secondaryTime`. After
   * the signal it creates no further record and rejects.
   */
  present(challenges: readonly { readonly name: string; readonly value: string }[], signal: AbortSignal): Promise<void>;
  /** Deletes all challenges of these names, also of an earlier run of the service. */
  remove(names: readonly string[]): Promise<void>;
}

/** Dependencies of `createChallengeRecords`. */
export interface ChallengeOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly zones: Pick<ZonePublisher, "publish" | "served">;
  readonly nameserver: Pick<Nameserver, "observe">;
  /** Names of the automatic NS records. */
  readonly nameServers: readonly string[];
}

const label = JSON.stringify({ "managed-by": "brume-certificate" });
const ttl = 60;
/** Milliseconds for the own name server, and for secondaries, and between two queries. */
const publishTime = 10_000;
const secondaryTime = 60_000;
const secondaryPause = 500;

const ownerOf = (name: string): string => `_acme-challenge.${name}`;

/** Returns the domain with the longest name that contains `name`. */
async function findDomain(db: Store["read"], name: string): Promise<table.DomainRow | undefined> {
  const labels = name.split(".");
  const above = labels.map((_, index) => labels.slice(index).join("."));
  const found = await table.findByNames(db, above);
  return found.sort((a, b) => b.ascii.length - a.ascii.length)[0];
}

const recordOf = (name: string, value: string, domain: table.DomainRow): StoredRecord =>
  readRecord("TXT", { Name: `${ownerOf(name)}.`, Text: value, TTL: ttl }, domain);

/** Creates the presenter. */
export function createChallengeRecords(options: ChallengeOptions): ChallengeRecords {
  const { store, clock, zones, nameserver, nameServers } = options;

  /** Applies the changes that `plan` returns, with their events, and publishes them. Resolves to the serial, null if nothing changed. */
  async function change(
    id: number,
    plan: (tx: Tx, domain: table.DomainRow) => Promise<readonly RecordChange[]>,
  ): Promise<Applied | null> {
    const applied = await store.write(async (tx) => {
      await table.lockDomain(tx, id);
      const row = await table.findAnyDomain.first(tx, { id });
      const domain = row && (await table.findDomain.first(tx, { id, project: row.project_id }));
      if (domain === undefined) return null;
      const now = clock.now();
      // The service has no token; the history shows the changes as those of the operator.
      const author = { token: 1, request: "certificate", now, canSee: () => true };
      const result = await applyChanges(tx, domain, await plan(tx, domain), author, nameServers);
      await append(
        tx,
        result.changes.map((each) => {
          const { Before, After } = showChange(each, result.domain);
          return {
            type: each.op === "Create" ? "record.created" : "record.deleted",
            date: now,
            project: domain.project_id,
            resource: "record",
            id: Before?.ID ?? After?.ID ?? 0,
            parent: domain.id,
            data: After === null ? null : JSON.stringify(After),
          };
        }),
      );
      return result;
    });
    if (applied !== null && applied.step !== null) await zones.publish(applied.step, publishTime);
    return applied;
  }

  /**
   * Resolves when each secondary that responds has confirmed the serials, by zone, or after `secondaryTime`. One that is not behind has
   * confirmed all zones that it gets: a limited key allows it only some.
   */
  async function awaitSecondaries(wanted: ReadonlyMap<string, number>, signal: AbortSignal): Promise<void> {
    for (let waited = 0; waited < secondaryTime; waited += secondaryPause) {
      const { secondaries } = await nameserver.observe();
      const isLate = secondaries.some(
        ({ reachable, behind, serials }) =>
          reachable !== false && behind > 0 && [...wanted].some(([zone, serial]) => (serials.get(zone) ?? 0) < serial),
      );
      if (!isLate) return;
      await sleep(secondaryPause, undefined, { signal });
    }
  }

  return {
    isHosted: async (name) => (await findDomain(store.read, name)) !== undefined,
    async present(challenges, signal) {
      const wanted = new Map<string, number>();
      for (const { name, value } of challenges) {
        signal.throwIfAborted();
        const domain = await findDomain(store.read, name);
        if (domain === undefined) throw new Error(`No domain of this service contains ${name}.`);
        const applied = await change(domain.id, async (_tx, row) => [
          { op: "Create", record: recordOf(name, value, row), labels: label, at: "", pointer: "" },
        ]);
        if (applied === null || zones.served(domain.ascii) < applied.domain.serial)
          throw new Error(`The name server does not serve the challenge in ${domain.ascii} yet.`);
        wanted.set(domain.ascii, applied.domain.serial);
      }
      await awaitSecondaries(wanted, signal);
    },
    async remove(names) {
      for (const name of new Set(names)) {
        const domain = await findDomain(store.read, name);
        if (domain === undefined) continue;
        const find = async (db: Store["read"] | Tx, row: table.DomainRow) => {
          const node = sortKey(servedOwner(recordOf(name, "x", row)));
          const rows = await table.listAtNodes(db, row.id, [node]);
          return rows.filter(({ type, labels }) => type === "TXT" && labels === label);
        };
        if ((await find(store.read, domain)).length === 0) continue;
        await change(domain.id, async (tx, row) =>
          (await find(tx, row)).map((found) => ({ op: "Delete", row: found, at: "", pointer: "" })),
        );
      }
    },
  };
}
