/**
 * `Idempotency-Key` (docs/spec.md#headers-and-queries-for-changes): a successful change is never executed twice under one key. The response
 * is stored in the transaction of the change, so both exist or neither. Running requests are known only in memory, so a crash frees their
 * keys. Responses may contain secrets, so they are encrypted.
 */
import { hash } from "node:crypto";
import { type ClockStep, dueBefore } from "../base/clock.ts";
import { deflateInTurns, inflateText } from "../base/deflate.ts";
import { ApiError } from "../base/error.ts";
import type { Sealer } from "../base/secret.ts";
import { runInTurns } from "../base/turn.ts";
import { prepare, runResting, type Store, type Tx } from "../store/db.ts";
import type { Reply } from "./reply.ts";

/** Milliseconds for which a key is stored. */
const keyLife = 24 * 60 * 60 * 1000;

/** The table of keys, for the job that deletes old rows. */
export const storedKeys = { name: "key", table: "idempotency", key: ["project_id", "key"], date: "date" } as const;

/** A key that a running request owns until `release`. */
export interface Claim {
  /**
   * Stores the response in the transaction of the change. Null: `amend` will store it. `now` is in ms since 1970. Throws
   * `idempotency_key_busy` if another process stored one first.
   */
  store(tx: Tx, reply: Reply | null, tasks: readonly number[], now: number): Promise<void>;
  /** Replaces the stored response, if the response changed after the commit. */
  amend(reply: Reply, tasks: readonly number[]): Promise<void>;
  /** Frees the key for other requests. */
  release(): void;
}

/** The idempotency keys of all projects. */
export interface IdempotencyKeys {
  /**
   * Returns the stored response to the same request, or a claim if this request is the first. `now` is in ms since 1970. Throws
   * `idempotency_key_busy` and `idempotency_key_conflict`.
   */
  claim(project: number, key: string, fingerprint: string, now: number): Promise<Claim | StoredResponse>;
}

/** The stored response to a request. */
export interface StoredResponse {
  /** Hash of the request. */
  readonly fingerprint: string;
  /** Null: the service ended before the response was sent. */
  readonly reply: Reply | null;
  /** Ids of the tasks that the request queued. */
  readonly tasks?: readonly number[];
}

/** Longer responses (in characters) are compressed: responses to many changes repeat themselves and shrink to a twentieth. */
const mostPlain = 4096;

/**
 * Returns the text to store, with yields. A compressed response is its fields as JSON, a line feed, and the body: as a part of the JSON, a long body
 * would be escaped, which takes longer than to compress it.
 */
export function* packInTurns({ reply: stored, ...others }: StoredResponse): Generator<void, string> {
  if (stored === null) return JSON.stringify({ ...others, reply: null });
  const { body, pieces, ...reply } = stored;
  if (pieces === undefined && body.length <= mostPlain) {
    const text = JSON.stringify({ ...others, reply: { ...reply, body } });
    if (text.length <= mostPlain) return text;
  }
  return yield* deflateInTurns([JSON.stringify({ ...others, reply }), "\n", ...(pieces?.texts ?? [body])]);
}

/** Returns the response of a text of `packInTurns`, also of an earlier release. */
export function unpack(text: string): StoredResponse {
  if (text.startsWith("{")) return JSON.parse(text) as StoredResponse;
  const inflated = inflateText(text);
  const end = inflated.indexOf("\n");
  // An earlier release stored the body as a part of the JSON, which has no line feed.
  if (end < 0) return JSON.parse(inflated) as StoredResponse;
  const { reply, ...others } = JSON.parse(inflated.slice(0, end)) as StoredResponse & { readonly reply: Reply };
  return { ...others, reply: { ...reply, body: inflated.slice(end + 1) } };
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

/** Moves the dates of the keys after the clock was set forward, so that none expires early. After a step back they only live longer. */
export async function moveKeyTimes(tx: Tx, step: ClockStep): Promise<void> {
  if (step.by < 0) return;
  await tx
    .updateTable("idempotency")
    .set((row) => ({ date: row("date", "+", step.by) }))
    .where("date", "<", dueBefore(step).to)
    .execute();
}

const busy = (): ApiError =>
  new ApiError(
    "idempotency_key_busy",
    "The first request with this key is still running. Repeat this one later.",
    [],
    1,
  );
const conflict = (): ApiError =>
  new ApiError(
    "idempotency_key_conflict",
    "Another request was sent with this key within the last 24 hours: its method, path, query or body differs.",
  );

/**
 * Returns a SHA-256 hash of a request that does not depend on the order of its fields: parsing has ordered them as in the schema, and the
 * labels are sorted here.
 */
export function fingerprint(...parts: readonly unknown[]): string {
  const text = JSON.stringify(parts);
  // A function that is called for each value would take three times as long.
  if (!text.includes('"Labels":{')) return hash("sha256", text);
  const withSorted = (name: string, part: unknown) => (name === "Labels" && isMap(part) ? sorted(part) : part);
  return hash("sha256", JSON.stringify(parts, withSorted));
}

const isMap = (part: unknown): part is object => typeof part === "object" && part !== null && !Array.isArray(part);

const sorted = (map: object): object =>
  Object.fromEntries(Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1)));

/** Creates the keys. `sealer` encrypts the stored responses. */
export function createIdempotencyKeys(store: Store, sealer: Sealer): IdempotencyKeys {
  /** Fingerprints of the running requests, by project and key. */
  const running = new Map<string, string>();

  const createClaim = (name: string, project: number, key: string, print: string): Claim => ({
    async store(tx, reply, tasks, now) {
      const sealed = sealer.seal(await runResting(tx, packInTurns({ fingerprint: print, reply, tasks })));
      const row = { project, key, date: now, sealed, since: now - keyLife };
      // Without other services, this one knows all running requests.
      if (store.alone) insert.send(tx, row);
      else if ((await insert.run(tx, row)) === 0) throw busy();
    },
    async amend(reply, tasks) {
      const sealed = sealer.seal(await runInTurns(packInTurns({ fingerprint: print, reply, tasks })));
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
        if (row === undefined) return createClaim(name, project, key, print);
        const stored = unpack(sealer.open(row.sealed));
        if (stored.fingerprint !== print) throw conflict();
        running.delete(name);
        return stored;
      } catch (error) {
        running.delete(name);
        throw error;
      }
    },
  };
}
