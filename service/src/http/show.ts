/** Creates responses from the results of handlers: objects, pages of lists, and large bodies in pieces. */
import { isLong, printInTurns } from "../base/printjson.ts";
import { runInTurns } from "../base/turn.ts";
import type { ListPage, ReadResult } from "./handler.ts";
import { linkNext } from "./read/page.ts";
import { json, type Reply, success } from "./reply.ts";
import { collect, printList } from "./streambody.ts";

/** Returns an object as JSON. Response, event and audit contain the same object, so its text is created once. */
export interface Print {
  (value: unknown): string | null;
  /** Creates the text of an object, with yields if it is long. Objects inside that are printed already keep their text. */
  inTurns(value: unknown): Generator<void, string | null>;
}

export function createPrint(): Print {
  const printed = new Map<unknown, string>();
  const print = (value: unknown): string | null => {
    if (value === null || value === undefined) return null;
    let text = printed.get(value);
    if (text === undefined) {
      text = JSON.stringify(value);
      printed.set(value, text);
    }
    return text;
  };
  function* inTurns(value: unknown): Generator<void, string | null> {
    if (!isLong(value)) return print(value);
    const text = (yield* printInTurns(value, printed)) ?? "null";
    printed.set(value, text);
    return text;
  }
  return Object.assign(print, { inTurns });
}

/** Creates the response from the result of a handler. If `answer` is undefined, the body is empty. */
export function show(result: ReadResult<unknown>, print: (value: unknown) => string | null = JSON.stringify): Reply {
  const { answer, tag, text } = result;
  const status = result.status ?? 200;
  const headers = [...(tag === undefined ? [] : ["ETag", `"${tag}"`]), ...(result.headers ?? [])];
  if (text !== undefined) {
    if (typeof text.body === "function") throw new Error("only a read may open its body later");
    if (typeof text.body === "object") return { status, type: text.type, body: "", pieces: text.body, headers };
    return { status, type: text.type, body: text.body, headers };
  }
  if (answer === undefined) return { status, type: null, body: "", headers };
  return { status, type: json, body: print(answer) ?? "null", headers };
}

/** The same, printed in slices if it is long. */
export async function showPrinted(result: ReadResult<unknown>, print: Print): Promise<Reply> {
  const { answer, text } = result;
  if (text === undefined) await runInTurns(print.inTurns(answer));
  return show(result, print);
}

/** Returns the response to a read. `folder`: for a large body. */
export async function showRead(result: ReadResult<unknown>, folder: string): Promise<Reply> {
  const { text } = result;
  if (text === undefined || typeof text.body !== "function") return showPrinted(result, createPrint());
  const { tag, pieces } = await text.body();
  const body = await collect(pieces, folder);
  const tagged = tag === undefined ? result : { ...result, tag };
  if (typeof body === "string") return show({ ...tagged, text: { type: text.type, body } });
  return { ...show({ ...tagged, text: { type: text.type, body: "" } }), file: body };
}

export async function showPage(
  { items, total, next }: ListPage<unknown>,
  route: { readonly path: string; readonly query: string },
  folder: string,
): Promise<Reply> {
  const headers = ["X-Total-Count", String(total)];
  if (next !== null) headers.push("Link", linkNext(route.path, route.query, next));
  if ("texts" in items) return success(json, `[${items.texts.join(",")}]`, headers);
  if (!(Symbol.asyncIterator in items)) return success(json, JSON.stringify(items), headers);
  const body = await collect(printList(items), folder);
  return typeof body === "string" ? success(json, body, headers) : { ...success(json, "", headers), file: body };
}
