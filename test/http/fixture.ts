/**
 * The real HTTP server with a test contract: books that can be created, updated, listed and deleted, so that every rule of
 * docs/spec.md#conventions can be tested without a feature. The books are rows of a table, so rollbacks are real.
 */

import { id, integer, Labels, list, listQuery, name, nameFilter, optional, text } from "@brume/api/common.ts";
import type { Problem } from "@brume/api/errors.ts";
import { eventOperations } from "@brume/api/event.ts";
import { type Operation, operations, type Scope } from "@brume/api/operation.ts";
import { serviceOperations } from "@brume/api/service.ts";
import { sql } from "kysely";
import { Type } from "typebox";
import { ApiError, errorAt } from "../../service/src/base/error.ts";
import type { Log } from "../../service/src/base/log.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import { observeCommits } from "../../service/src/engine/commit.ts";
import { append, createFeed, type Feed } from "../../service/src/engine/event.ts";
import type { AnyHandler } from "../../service/src/http/bind.ts";
import type { AuditRow, Caller, Request, ResourceChange } from "../../service/src/http/handler.ts";
import { takePage } from "../../service/src/http/list.ts";
import { createHttp, type Http, type HttpOptions } from "../../service/src/http/server.ts";
import type { Reader, Store } from "../../service/src/store/db.ts";
import { type Database, type Kind, startDatabase } from "../support/databases.ts";

const Book = Type.Object({ ID: id(), Name: text(), Pages: integer(1, 10_000), State: text(), Labels });
const Fields = Type.Object({ Name: name(), Pages: optional(integer(1, 10_000)), Labels: optional(Labels) });
const book = { id: "domain_not_found" } as const;

const libraryContract = {
  ...serviceOperations,
  ...eventOperations,
  ...operations({
    listBooks: {
      method: "GET",
      path: "/book",
      access: "dns:read",
      summary: "",
      query: listQuery({ name: nameFilter }),
      answer: list(Book),
      list: true,
    },
    createBook: {
      method: "POST",
      path: "/book",
      access: "dns:write",
      summary: "",
      body: Fields,
      answer: Book,
      etag: true,
      resultOperation: "readBook",
    },
    readBook: {
      method: "GET",
      path: "/book/{id}",
      access: "dns:read",
      summary: "",
      params: book,
      answer: Book,
      etag: true,
      media: "text/dns",
    },
    updateBook: {
      method: "PUT",
      path: "/book/{id}",
      access: "dns:write",
      summary: "",
      params: book,
      body: Type.Partial(Fields),
      answer: Book,
      etag: true,
      resultOperation: "readBook",
      wait: 2,
    },
    deleteBook: { method: "DELETE", path: "/book/{id}", access: "dns:write", summary: "", params: book, answer: null },
    deleteBooks: {
      method: "DELETE",
      path: "/book-batch",
      access: "dns:write",
      summary: "",
      body: Type.Object({ Books: list(id()) }),
      answer: null,
    },
    refreshBook: {
      method: "POST",
      path: "/book/{id}/refresh",
      access: "dns:write",
      summary: "",
      params: book,
      answer: Book,
    },
    readChapter: {
      method: "GET",
      path: "/book/{id}/action/{actionID}",
      access: "dns:read",
      unlimited: true,
      summary: "",
      params: { id: "domain_not_found", actionID: "record_not_found" },
      answer: Type.Unknown(),
    },
    readShelf: {
      method: "GET",
      path: "/shelf/{id}",
      access: "account:admin",
      own: "project",
      summary: "",
      params: { id: "project_not_found" },
      answer: Type.Unknown(),
    },
    createShelf: {
      method: "POST",
      path: "/shelf",
      access: "account:admin",
      allowedWhenBlocked: true,
      summary: "",
      answer: Type.Unknown(),
    },
  }),
} as const satisfies Readonly<Record<string, Operation>>;

interface BookRow {
  readonly id: number;
  readonly project: number;
  readonly name: string;
  readonly pages: number;
  readonly version: number;
}

const allScopes: readonly Scope[] = ["dns:read", "dns:write", "account:admin"];

export function createCaller(part: Partial<Caller> = {}): Caller {
  return {
    tokenId: 1,
    tokenName: "first",
    projectId: 1,
    projectBlocked: false,
    scopes: allScopes,
    restriction: null,
    rateLimit: null,
    expiresAt: null,
    ...part,
  };
}

/** A token's text is 64 times its letter. */
export const tokenOf = (letter: string): string => letter.repeat(64);

interface ResponseFields extends Problem {
  readonly ID: number;
  readonly Name: string;
  readonly Pages: number;
  readonly State: string;
  readonly Status: string;
  readonly Type: string;
  readonly ResourceID: number;
}
/** Any body of a response: a book, an event, an error, or a list of them. */
export type Answered = ResponseFields & readonly ResponseFields[];
export const read = (text: string): Answered => JSON.parse(text) as Answered;

export interface Library {
  readonly database: Database;
  readonly store: Store;
  readonly feed: Feed;
  readonly http: Http;
  readonly url: string;
  readonly port: number;
  /** Callers by token; tests add and remove them. */
  readonly callers: Map<string, Caller>;
  readonly audit: AuditRow[];
  readonly logged: { level: string; message: string; detail: object | undefined }[];
  /** Awaited by `refresh` of a book; resolves to true if the response changed. */
  settle: ((ms: number) => Promise<boolean>) | null;
  /** A part of the response after `refresh` of an update, as `ChangeResult.expected`. */
  expected: object | null;
  /** Awaited by `prepare` of a creation. */
  prepare: (() => Promise<void>) | null;
  status: "ready" | "starting" | "failing";
  now: number;
  countBooks(): Promise<number>;
  append(type: string, resource: string, id: number, data: unknown, parent?: number): Promise<void>;
  close(): Promise<void>;
}

export async function openLibrary(options: Partial<HttpOptions> = {}, kind: Kind = "sqlite"): Promise<Library> {
  const database = await startDatabase(kind);
  const store = observeCommits(database.store);
  await store.write(async (tx) => {
    const key = sql.raw(
      kind === "sqlite" ? "INTEGER PRIMARY KEY AUTOINCREMENT" : "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    );
    await sql`CREATE TABLE book (id ${key}, project BIGINT NOT NULL, name TEXT NOT NULL, pages BIGINT NOT NULL, version BIGINT NOT NULL)`.execute(
      tx,
    );
  });
  const clock = { now: () => library.now };
  const logged: Library["logged"] = [];
  const log: Log = (level, message, detail) => void logged.push({ level, message, detail });
  const feed = createFeed({ store, clock, log });
  const callers = new Map<string, Caller>([[tokenOf("a"), createCaller()]]);
  const audit: AuditRow[] = [];
  const library = {
    database,
    store,
    feed,
    callers,
    audit,
    logged,
    settle: null,
    expected: null,
    prepare: null,
    status: "ready",
    now: Date.UTC(2026, 10, 20, 9, 15),
    async countBooks() {
      const { rows } = await sql<{ count: number }>`SELECT count(*) AS count FROM book`.execute(store.read);
      return Number(rows[0]?.count);
    },
    append: (type: string, resource: string, id: number, shown: unknown, parent: number | null = null) => {
      const data = shown === null ? null : JSON.stringify(shown);
      return store.write((tx) =>
        append(tx, [{ type, date: library.now, project: 1, resource, id, parent, token: 1, request: "r1", data }]),
      );
    },
    async close() {
      await http.close(200);
      feed.close();
      await database.close();
    },
  } as unknown as Library & { http: Http; url: string; port: number };
  const http = createHttp({
    store,
    clock,
    log,
    feed,
    sealer: createSealer(Buffer.alloc(32, 7)),
    operations: libraryContract,
    handlers: handlersOf(library),
    authenticate(value) {
      const caller = callers.get(value);
      if (caller === undefined) throw new ApiError("token_invalid", "The token is not known.");
      if (caller.expiresAt !== null && caller.expiresAt <= library.now)
        throw new ApiError("token_expired", "The token has expired.");
      return caller;
    },
    audit: {
      async write(_tx, row) {
        // A transaction may run again: the row of a request counts once.
        const known = audit.findIndex(({ requestId }) => requestId === row.requestId);
        if (known >= 0) audit.splice(known, 1);
        audit.push(row);
      },
      async insert(_tx, row) {
        return audit.push(row);
      },
      async add() {},
    },
    readiness: () => ({ Status: library.status, Checks: [] }),
    freshness: () => (store.processes === "one" ? store.commits() : null),
    openapi: () => '{"openapi":"3.1.0"}',
    ...options,
  });
  library.http = http;
  const address = await http.listen("127.0.0.1", 0);
  library.url = `http://${address}`;
  library.port = Number(address.split(":")[1]);
  return library;
}

const show = (row: BookRow, state = "Active") => ({
  ID: row.id,
  Name: row.name,
  Pages: row.pages,
  State: state,
  Labels: {},
});

const tagOf = (row: BookRow): string => `book-${row.id}-${row.version}`;

async function find(db: Reader, { caller, params }: Request): Promise<BookRow> {
  const id = (params as { id: number }).id;
  const { rows } = await sql<BookRow>`SELECT * FROM book WHERE id = ${id} AND project = ${caller.projectId}`.execute(
    db,
  );
  const row = rows[0];
  if (row === undefined) throw new ApiError("domain_not_found", `There is no book ${id} in this project.`);
  return row;
}

function handlersOf(library: Library): Record<string, AnyHandler> {
  const settled = (row: BookRow) => async (ms: number) =>
    (await library.settle?.(ms)) === true
      ? { ...show(row, "Settled"), ...(library.expected !== null && { Chapters: library.expected }) }
      : undefined;
  const changeOf = (type: ResourceChange["type"], id: number, before: unknown, after: unknown): ResourceChange[] => [
    { type, id, parent: null, before, after },
  ];
  return {
    listBooks: {
      async list({ query, caller }, db) {
        const { rows } = await sql<BookRow>`SELECT * FROM book WHERE project = ${caller.projectId} ORDER BY id`.execute(
          db,
        );
        const page = takePage(rows, query, { id: (row) => row.id, name: (row) => row.name });
        return { ...page, items: page.items.map((row) => show(row)) };
      },
    },
    createBook: {
      async prepare({ body, caller, dryRun }) {
        await library.prepare?.();
        return async (tx) => {
          const { Name, Pages = 100 } = body as unknown as { Name: string; Pages?: number };
          if (Name === "forbidden") throw errorAt("cname_conflict", "/Name", "This book cannot be.");
          const { rows } = await sql<BookRow>`
            INSERT INTO book (project, name, pages, version) VALUES (${caller.projectId}, ${Name}, ${Pages}, 1)
            RETURNING id, project, name, pages, version`.execute(tx);
          const row = rows[0] as BookRow;
          if (Name === "explosive") throw new Error("the secret inside");
          const answer = show(dryRun ? { ...row, id: 0 } : row, library.settle === null ? "Active" : "New");
          return {
            answer,
            tag: tagOf(row),
            changes: changeOf("domain.created", row.id, null, answer),
            refresh: settled(row),
          };
        };
      },
    },
    readBook: {
      async read(request, db) {
        const row = await find(db, request);
        if (request.otherMedia) return { answer: null, text: { type: "text/dns", body: row.name } };
        return { answer: show(row, row.pages === 1 ? "New" : "Active"), tag: tagOf(row) };
      },
    },
    updateBook: {
      async change(request, tx) {
        const row = await find(tx, request);
        request.expect(tagOf(row));
        const { Name = row.name, Pages = row.pages } = request.body as unknown as { Name?: string; Pages?: number };
        const same = Name === row.name && Pages === row.pages;
        const next = { ...row, name: Name, pages: Pages, version: row.version + (same ? 0 : 1) };
        await sql`UPDATE book SET name = ${Name}, pages = ${Pages}, version = ${next.version} WHERE id = ${row.id}`.execute(
          tx,
        );
        const changes = same ? [] : changeOf("domain.changed", row.id, show(row), show(next));
        const expected = library.expected ?? undefined;
        return { answer: show(next), tag: tagOf(next), changes: changes, refresh: settled(next), expected };
      },
    },
    deleteBook: {
      async change(request, tx) {
        const row = await find(tx, request);
        request.expect(tagOf(row));
        await sql`DELETE FROM book WHERE id = ${row.id}`.execute(tx);
        return { answer: undefined, changes: changeOf("domain.deleted", row.id, show(row), null) };
      },
    },
    deleteBooks: {
      async change({ body }, tx) {
        for (const id of (body as unknown as { Books: number[] }).Books)
          await sql`DELETE FROM book WHERE id = ${id}`.execute(tx);
        return { answer: undefined, changes: [] };
      },
    },
    refreshBook: {
      async change(request, tx) {
        const row = await find(tx, request);
        return { answer: show(row), changes: [], refresh: () => Promise.reject(new Error("the refresh fails")) };
      },
    },
    readChapter: { read: async ({ params }) => ({ answer: params }) },
    readShelf: { read: async ({ params }) => ({ answer: params }) },
    createShelf: { change: async () => ({ answer: { ID: 1 }, changes: [] }) },
  };
}
