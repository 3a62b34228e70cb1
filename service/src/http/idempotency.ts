/**
 * `Idempotency-Key` (api section 1.11): a change that was answered with 200 is never done twice under one key. The answer is
 * stored in the transaction of the change, so key and change are there together or not at all; that a first request still
 * runs is known in memory only, so a crash frees its key. Answers may show a secret once, so they are sealed.
 */
import { hash } from "node:crypto";
import { Fault } from "../base/fault.ts";
import type { Sealer } from "../base/secret.ts";
import { prepare, type Store, type Tx } from "../store/db.ts";
import type { Reply } from "./reply.ts";

/** How long a key is known, in milliseconds. */
export const keyLife = 24 * 60 * 60 * 1000;

/** A key that this request holds until it lets go. */
export interface Claim {
  /** In the transaction of the change. Throws `idempotency_key_busy` when another process was first. */
  keep(tx: Tx, reply: Reply, now: number): Promise<void>;
  /** The answer became another one after the commit: that is the one to repeat. */
  amend(reply: Reply): Promise<void>;
  release(): void;
}

export interface IdempotencyKeys {
  /** Either the stored answer of the same request, or the right to be the first. Throws `idempotency_key_busy` and `idempotency_key_conflict`. */
  claim(project: number, key: string, fingerprint: string, now: number): Promise<Claim | Reply>;
  /** Forgets what is older than a day; resolves to how many keys. */
  prune(now: number): Promise<number>;
}

interface Kept {
  readonly fingerprint: string;
  readonly reply: Reply;
}

const find = prepare<{ project: number; key: string; since: number }>()((db, p) =>
  db
    .selectFrom("idempotency")
    .select("sealed")
    .where("project_id", "=", p("project"))
    .where("key", "=", p("key"))
    .where("date", ">", p("since")),
);

const insert = prepare<{ project: number; key: string; date: number; sealed: Uint8Array; since: number }>()((db, p) =>
  db
    .insertInto("idempotency")
    .values({ project_id: p("project"), key: p("key"), date: p("date"), sealed: p("sealed") })
    .onConflict((conflict) =>
      conflict
        .columns(["project_id", "key"])
        .doUpdateSet({ date: p("date"), sealed: p("sealed") })
        .where("idempotency.date", "<=", p("since")),
    ),
);

const replace = prepare<{ project: number; key: string; sealed: Uint8Array }>()((db, p) =>
  db
    .updateTable("idempotency")
    .set({ sealed: p("sealed") })
    .where("project_id", "=", p("project"))
    .where("key", "=", p("key")),
);

const removeOld = prepare<{ since: number }>()((db, p) => db.deleteFrom("idempotency").where("date", "<=", p("since")));

const busy = (): Fault =>
  new Fault("idempotency_key_busy", "The first request with this key has not been answered yet.", [], 1);
const conflict = (): Fault =>
  new Fault(
    "idempotency_key_conflict",
    "Another method, path, query or body was sent with this key within the last 24 hours.",
  );

/** One text for the same request, however its parts are spelt; only its hash is kept, and that sealed. */
export function fingerprint(...parts: readonly string[]): string {
  return hash("sha256", JSON.stringify(parts));
}

export function createIdempotencyKeys(store: Store, sealer: Sealer): IdempotencyKeys {
  /** Fingerprints of requests that run, by project and key. */
  const running = new Map<string, string>();

  const seal = (kept: Kept): Uint8Array => sealer.seal(JSON.stringify(kept));

  const hold = (name: string, project: number, key: string, print: string): Claim => ({
    async keep(tx, reply, now) {
      const sealed = seal({ fingerprint: print, reply });
      const stored = await insert.run(tx, { project, key, date: now, sealed, since: now - keyLife });
      if (stored === 0) throw busy();
    },
    async amend(reply) {
      const sealed = seal({ fingerprint: print, reply });
      await store.write((tx) => replace.run(tx, { project, key, sealed }));
    },
    release: () => void running.delete(name),
  });

  return {
    async claim(project, key, print, now) {
      const name = `${project} ${key}`;
      const first = running.get(name);
      if (first !== undefined) throw first === print ? busy() : conflict();
      running.set(name, print);
      try {
        const row = await find.first(store.read, { project, key, since: now - keyLife });
        if (row === undefined) return hold(name, project, key, print);
        const kept = JSON.parse(sealer.open(row.sealed)) as Kept;
        if (kept.fingerprint !== print) throw conflict();
        running.delete(name);
        return kept.reply;
      } catch (error) {
        running.delete(name);
        throw error;
      }
    },
    async prune(now) {
      return store.write((tx) => removeOld.run(tx, { since: now - keyLife }));
    },
  };
}
