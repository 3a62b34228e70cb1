/**
 * The SDK: one method for each operation of the contract, with types derived from the contract. No code is generated. Beyond single
 * calls it reads lists page by page, streams events, and waits for a state.
 */
import type { Action } from "./action.ts";
import type { Image } from "./catalog.ts";
import type { Contract } from "./contract.ts";
import type { Event } from "./event.ts";
import { type Answer, type Body, isChange, type Operation, type Params, type Query } from "./operation.ts";
import { type Route, routes } from "./routes.ts";
import { follow, type Reset, type StreamOptions } from "./stream.ts";
import { createTransport, type TransportOptions } from "./transport.ts";
import { type UploadCalls, type UploadOptions, type UploadSource, type UploadTarget, uploadFile } from "./upload.ts";
import { requireCompleted, type WaitOptions, waitUntil } from "./wait.ts";

export { ApiError, ConnectionError } from "./transport.ts";
export { ActionError, WaitError } from "./wait.ts";

/** What `createClient` needs beside the transport. */
export interface ClientOptions<C extends Table = Contract> extends TransportOptions {
  readonly contract?: C;
  /** Requests strict reading: the service rejects unknown fields and converts no types (`Prefer: handling=strict`). */
  readonly strict?: boolean;
  /** Returns the time in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
  /** Returns a new `Idempotency-Key`. Default: `crypto.randomUUID`. */
  readonly newKey?: () => string;
}

/** A contract: operations by operation id. */
export type Table = Readonly<Record<string, Operation>>;

type Given<Key extends string, Part> = keyof Part extends never
  ? unknown
  : Partial<Part> extends Part
    ? { readonly [K in Key]?: Part }
    : { readonly [K in Key]: Part };

/** Input of an operation: ids of the path, filters of the query, fields of the body or its content. */
export type Input<Op extends Operation> = Given<"path", Params<Op>> &
  Given<"query", Query<Op>> &
  (Body<Op> extends undefined ? unknown : { readonly body: Body<Op> }) &
  (Op extends { readonly content: true } ? { readonly content: Content; readonly range?: string } : unknown);

/** Content of a request, for an operation with `content`; `range` is the value of `Content-Range`. */
export type Content = Blob | Uint8Array<ArrayBuffer>;

/** Options of a read. `signal` cancels it. */
export interface ReadOptions {
  readonly signal?: AbortSignal;
}

/** Last argument of the methods that change something. */
export interface ChangeOptions extends ReadOptions {
  /** Seconds (at most 60) to wait until the change has taken effect (`Prefer: wait`). */
  readonly wait?: number;
  /** Entity tag (`etag` of a reply) that the object must still have; otherwise the call throws `etag_mismatch`. */
  readonly ifMatch?: string;
  /** Key of the request. Set it to keep the request idempotent across restarts of the program. */
  readonly idempotencyKey?: string;
  /** Validate only: nothing is changed, and the response is the one that the request would produce. */
  readonly dryRun?: boolean;
}

type OptionsOf<Op extends Operation> = Op["method"] extends "GET" ? ReadOptions : ChangeOptions;
type Args<Op extends Operation, Options> =
  Record<never, never> extends Input<Op>
    ? [input?: Input<Op>, options?: Options]
    : [input: Input<Op>, options?: Options];
type Call<Op extends Operation, Result> = (...args: Args<Op, OptionsOf<Op>>) => Promise<Result>;

/** A response with its status and headers. */
export interface Reply<A> {
  readonly answer: A;
  readonly status: number;
  readonly headers: Headers;
  /** Entity tag of the object, for `ifMatch`. */
  readonly etag: string | null;
  readonly requestId: string;
}

type Names<C extends Table, Shape> = { [N in keyof C]: C[N] extends Shape ? N : never }[keyof C];
/** Names of the GET operations. */
export type ReadName<C extends Table> = Names<C, { readonly method: "GET" }>;
/** Names of the operations that return a list. */
export type ListName<C extends Table> = Names<C, { readonly list: true }>;
/** Names of the operations with a second media type. */
export type TextName<C extends Table> = Exclude<
  Names<C, { readonly media: string }>,
  Names<C, { readonly media: "text/event-stream" }>
>;
type Item<Op extends Operation> = Answer<Op> extends readonly (infer T)[] ? T : never;
/** A table by operation: the compiler resolves each type once instead of once per call. */
type Items<C extends Table> = { readonly [N in keyof C]: Item<C[N]> };
type Readings<C extends Table> = { readonly [N in keyof C]: Args<C[N], ReadOptions> };

/** Methods of a client beyond the operations. */
export interface Helpers<C extends Table> {
  /** The same methods; they return the response with status and headers. */
  readonly raw: { readonly [N in keyof C]: Call<C[N], Reply<Answer<C[N]>>> };
  /** Returns the second form of a response as text: `text("readDomain", { path: { id: 3 } })` returns a zone file. */
  text<N extends TextName<C>>(name: N, ...args: Args<C[N], ReadOptions>): Promise<string>;
  /** Iterates over a list page by page, with 100 objects a page by default (`limit`). */
  pages<N extends ListName<C>>(name: N, ...args: Readings<C>[N]): AsyncGenerator<Items<C>[N][], void>;
  /** Iterates over the objects of a list, which is read page by page. */
  items<N extends ListName<C>>(name: N, ...args: Readings<C>[N]): AsyncGenerator<Items<C>[N], void>;
  /**
   * Uploads a file as a new image, or continues the upload of one. Continues after lost connections and restarts of the service. Resolves
   * when all content was received; the file is checked and converted afterwards (`waitFor("readImage", …)`).
   */
  uploadImage(target: UploadTarget, source: UploadSource, options?: UploadOptions): Promise<Image>;
  /** Streams events. Reconnects without gaps or duplicates; ends when `signal` aborts. */
  events(options?: StreamOptions): AsyncGenerator<Event | Reset, void>;
  /**
   * Waits until an action has ended, and returns it. `onProgress` receives it after each change of its steps. Throws `ActionError` if it
   * failed or was canceled, and `WaitError` after `timeout`.
   */
  waitFor(action: Pick<Action, "ID" | "ServerID">, options?: Omit<WaitOptions<Action>, "until">): Promise<Action>;
  /** Reads an object repeatedly until `until` returns true, and returns it. Throws `WaitError` after `timeout`. */
  waitFor<N extends ReadName<C>>(
    name: N,
    input: Input<C[N]>,
    options?: WaitOptions<Answer<C[N]>>,
  ): Promise<Answer<C[N]>>;
}

/** A client with one method per operation. */
export type Client<C extends Table = Contract> = { readonly [N in keyof C]: Call<C[N], Answer<C[N]>> } & Helpers<C>;

/** Milliseconds: an emulated server with a large image needs several minutes. */
const actionTimeout = 900_000;

interface AnyInput {
  readonly path?: Readonly<Record<string, number>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly content?: Content;
  readonly range?: string;
}

/** Returns path and query with all ids filled in: `/dns/3?records=false`. */
function writeTarget(path: string, input: AnyInput, extra: Readonly<Record<string, string | undefined>> = {}): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = input.path?.[name];
    if (id === undefined) throw new TypeError(`${path} needs path.${name}`);
    return encodeURIComponent(id);
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...input.query, ...extra })) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query.size > 0 ? `${filled}?${query}` : filled;
}

/** Returns the cursor of the next page from a `Link` header (RFC 8288); null: this is the last page. */
function readCursor(link: string | null): string | null {
  const target = /<([^>]*)>[^,]*;\s*rel="?next"?/.exec(link ?? "")?.[1];
  return target === undefined ? null : new URL(target, "http://any").searchParams.get("cursor");
}

/**
 * Creates a client: one method for each operation, and the helpers. Network errors, 429 and 503 are retried, with the same
 * `Idempotency-Key` for a change. Methods throw `ApiError` for an error response and `ConnectionError` if there is no response.
 *
 *     const brume = createClient({ url: "http://127.0.0.1:8080", token });
 *     const domain = await brume.createDomain({ body: { Name: "example.org" } });
 */
export function createClient<const C extends Table = Contract>(options: ClientOptions<C>): Client<C> {
  const table: Readonly<Record<string, Route>> = options.contract ?? routes;
  const { strict = false, now = Date.now, newKey = () => crypto.randomUUID() } = options;
  const transport = createTransport(options);

  function find(name: PropertyKey): Route {
    const op = table[String(name)];
    if (!op) throw new TypeError(`the contract has no operation ${String(name)}`);
    return op;
  }

  async function call(
    op: Route,
    input: AnyInput = {},
    options: ChangeOptions = {},
    accept?: string,
  ): Promise<Reply<unknown>> {
    const { wait, ifMatch, dryRun, signal } = options;
    const prefer = [strict && "handling=strict", wait !== undefined && `wait=${wait}`].filter((part) => part !== false);
    // A dry run uses no idempotency key, and content none, because its position makes it idempotent.
    const key = isChange(op) && op.content !== true && !dryRun ? (options.idempotencyKey ?? newKey()) : undefined;
    const { status, headers, text } = await transport.send({
      method: op.method,
      target: writeTarget(op.path, input, { dryRun: dryRun ? "true" : undefined }),
      headers: {
        ...(accept !== undefined && { Accept: accept }),
        ...(input.body !== undefined && { "Content-Type": "application/json" }),
        ...(input.content !== undefined && { "Content-Type": "application/octet-stream" }),
        ...(input.range !== undefined && { "Content-Range": input.range }),
        ...(prefer.length > 0 && { Prefer: prefer.join(", ") }),
        ...(key !== undefined && { "Idempotency-Key": key }),
        ...(ifMatch !== undefined && { "If-Match": ifMatch }),
      },
      body: input.content ?? (input.body === undefined ? undefined : JSON.stringify(input.body)),
      signal,
      accepts: op.alsoReturns,
    });
    const isJson = /^application\/json\b/i.test(headers.get("content-type") ?? "");
    return {
      answer: isJson ? JSON.parse(text) : text === "" ? undefined : text,
      status,
      headers,
      etag: headers.get("etag"),
      requestId: headers.get("x-request-id") ?? "",
    };
  }

  async function* pages(name: PropertyKey, input: AnyInput = {}, options: ReadOptions = {}) {
    const op = find(name);
    let cursor: string | null = null;
    do {
      const query = { limit: 100, ...input.query, ...(cursor !== null && { cursor }) };
      const { answer, headers } = await call(op, { ...input, query }, options);
      yield answer as unknown[];
      cursor = readCursor(headers.get("link"));
    } while (cursor !== null);
  }

  const uploadCalls: UploadCalls = {
    create: async (body, signal) =>
      (await call(find("createImage"), { body }, { ...(signal && { signal }) })).answer as Image,
    read: async (id, signal) =>
      (await call(find("readImage"), { path: { id } }, { ...(signal && { signal }) })).answer as Image,
    async write(id, content, range, signal) {
      const input = { path: { id }, content, range };
      return (await call(find("writeImageContent"), input, { ...(signal && { signal }) })).answer as Image;
    },
    now,
    pause: (failures, signal) => transport.sleep(transport.pause(failures), signal),
  };

  const helpers = {
    pages,
    async *items(name: PropertyKey, input?: AnyInput, options?: ReadOptions) {
      for await (const page of pages(name, input, options)) yield* page;
    },
    async text(name: PropertyKey, input?: AnyInput, options?: ReadOptions) {
      const op = find(name);
      const { answer } = await call(op, input, options, op.media);
      return typeof answer === "string" ? answer : "";
    },
    uploadImage: (target: UploadTarget, source: UploadSource, options?: UploadOptions) =>
      uploadFile(uploadCalls, target, source, options),
    events: (options: StreamOptions = {}) => follow(find("listEvents").path, transport, options),
    async waitFor(subject: PropertyKey | Pick<Action, "ID" | "ServerID">, second?: object, third?: object) {
      const isAction = typeof subject === "object";
      const name = isAction ? "readAction" : subject;
      const input: AnyInput = isAction ? { path: { id: subject.ServerID, actionID: subject.ID } } : (second ?? {});
      const given: WaitOptions<unknown> = (isAction ? second : third) ?? {};
      const options = { ...(isAction && { timeout: actionTimeout }), ...given };
      const op = find(name);
      const { signal } = options;
      const read = async () => (await call(op, input, signal ? { signal } : {})).answer;
      const what = `${String(name)} ${writeTarget(op.path, input)}`;
      const answer = await waitUntil(what, read, options, { now, sleep: transport.sleep });
      return isAction ? requireCompleted(answer as Action) : answer;
    },
  };

  const raw: Record<string, unknown> = {};
  const methods: Record<string, unknown> = {};
  for (const [name, op] of Object.entries(table)) {
    raw[name] = (input?: AnyInput, options?: ChangeOptions) => call(op, input, options);
    methods[name] = async (input?: AnyInput, options?: ChangeOptions) => (await call(op, input, options)).answer;
  }
  return { ...methods, ...helpers, raw } as unknown as Client<C>;
}
