/** Sends the request of a `curl` command line, with the flags that the documents use. */
import { Readable } from "node:stream";
import { waitUntil } from "./waituntil.ts";

/** Result of a call. */
export interface Response {
  readonly status: number;
  /** What `curl` prints; with `-i` the headers before the body. */
  readonly out: string;
}

/** Milliseconds in which the first data of a stream must come; a stream that has sent some is closed after it. */
const streamPause = 200;

/** Runs `curl WORD…`. Throws an error for a flag that it does not know. */
export async function curl(words: readonly string[]): Promise<Response> {
  const headers = new Headers();
  let [url, body, method, hasHeaders, isStream]: [string, string | null, string, boolean, boolean] = [
    "",
    null,
    "GET",
    false,
    false,
  ];
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "-H") {
      const [name = "", ...value] = (rest.shift() ?? "").split(": ");
      headers.append(name, value.join(": "));
    } else if (word === "--json" || word === "-d") {
      body = rest.shift() ?? "";
      if (method === "GET") method = "POST";
      headers.set("content-type", "application/json");
    } else if (word === "-X") method = rest.shift() ?? "";
    else if (word === "-i") hasHeaders = true;
    else if (word === "-N" || word === "-sN") isStream = true;
    else if (word.startsWith("-")) throw new Error(`unknown flag ${word}`);
    else url = word;
  }
  const controller = new AbortController();
  const answer = await fetch(url, { method, headers, body, signal: controller.signal });
  const lines = hasHeaders ? [...answer.headers].map(([name, value]) => `${name}: ${value}\n`).join("") : "";
  if (!isStream) return { status: answer.status, out: lines + (await answer.text()) };
  let out = "";
  const reading = (async () => {
    if (answer.body) for await (const part of Readable.fromWeb(answer.body)) out += String(part);
  })().catch(() => {});
  await waitUntil(
    "the first bytes of the stream",
    () => out,
    (text) => text !== "",
    streamPause,
  );
  controller.abort();
  await reading;
  return { status: answer.status, out: lines + out };
}
