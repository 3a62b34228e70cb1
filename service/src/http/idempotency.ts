/**
 * `Idempotency-Key` (docs/spec.md#headers-and-queries-for-changes): a change that was answered with 200 is never done twice under one key.
 * The answer is stored in the transaction of the change, so key and change are there together or not at all; that a first request still
 * runs is known in memory only, so a crash frees its key. Answers may show a secret once, so they are sealed.
 */
import { hash } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { type ClockStep, dueBefore } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import type { Sealer } from "../base/secret.ts";
import { prepare, type Store, type Tx } from "../store/db.ts";
import type { Reply } from "./reply.ts";

/** How long a key is known, in milliseconds. */
export const keyLife = 24 * 60 * 60 * 1000;

/** Keys as what grows with use. */
export const storedKeys = { name: "key", table: "idempotency", key: ["project_id", "key"], date: "date" } as const;

/** A key that this request holds until it lets go. */
export interface Claim {
  /** In the transaction of the change. Throws `idempotency_key_busy` when another process was first. */
  keep(tx: Tx, reply: Reply, tasks: readonly number[], now: number): Promise<void>;
  /** The answer became another one after the commit: that is the one to repeat. */
  amend(reply: Reply, tasks: readonly number[]): Promise<void>;
  release(): void;
}

export interface IdempotencyKeys {
  /** Either the stored answer of the same request, or the right to be the first. Throws `idempotency_key_busy` and `idempotency_key_conflict`. */
  claim(project: number, key: string, fingerprint: string, now: number): Promise<Claim | StoredResponse>;
}

/** What is known of a request that was answered. */
export interface StoredResponse {
  readonly fingerprint: string;
  readonly reply: Reply;
  /** The work that it ordered. */
  readonly tasks?: readonly number[];
}

/** Answers to many changes at once say much the same again and again: beyond this many characters they are kept in a twentieth. */
const mostPlain = 4096;

function pack(kept: StoredResponse): string {
  const text = JSON.stringify(kept);
  return text.length <= mostPlain ? text : deflateRawSync(text, { level: 1 }).toString("base64");
}

const unpack = (text: string): StoredResponse =>
  JSON.parse(text.startsWith("{") ? text : inflateRawSync(Buffer.from(text, "base64")).toString()) as StoredResponse;

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

/** The clock was set forward, and no key is forgotten early for that. Set back, it only makes them known for longer. */
export async function moveKeyTimes(tx: Tx, step: ClockStep): Promise<void> {
  if (step.by < 0) return;
  await tx
    .updateTable("idempotency")
    .set((row) => ({ date: row("date", "+", step.by) }))
    .where("date", "<", dueBefore(step).to)
    .execute();
}

const busy = (): ApiError =>
  new ApiError("idempotency_key_busy", "The first request with this key has not been answered yet.", [], 1);
const conflict = (): ApiError =>
  new ApiError(
    "idempotency_key_conflict",
    "Another method, path, query or body was sent with this key within the last 24 hours.",
  );

/**
 * The same for the same request, in whatever order its fields came: reading has put them into the schema's, all but those that the
 * client has named. Only a hash is kept, and that sealed.
 */
export function fingerprint(...parts: readonly unknown[]): string {
  return hash(
    "sha256",
    JSON.stringify(parts, (name, part: unknown) => (name === "Labels" && isMap(part) ? sorted(part) : part)),
  );
}

const isMap = (part: unknown): part is object => typeof part === "object" && part !== null && !Array.isArray(part);

const sorted = (map: object): object =>
  Object.fromEntries(Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1)));

export function createIdempotencyKeys(store: Store, sealer: Sealer): IdempotencyKeys {
  /** Fingerprints of requests that run, by project and key. */
  const running = new Map<string, string>();

  const seal = (kept: StoredResponse): Uint8Array => sealer.seal(pack(kept));

  const hold = (name: string, project: number, key: string, print: string): Claim => ({
    async keep(tx, reply, tasks, now) {
      const sealed = seal({ fingerprint: print, reply, tasks });
      const stored = await insert.run(tx, { project, key, date: now, sealed, since: now - keyLife });
      if (stored === 0) throw busy();
    },
    async amend(reply, tasks) {
      const sealed = seal({ fingerprint: print, reply, tasks });
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
        const kept = unpack(sealer.open(row.sealed));
        if (kept.fingerprint !== print) throw conflict();
        running.delete(name);
        return kept;
      } catch (error) {
        running.delete(name);
        throw error;
      }
    },
  };
}
