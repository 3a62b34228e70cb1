/**
 * Files from elsewhere, over HTTP. Users name the addresses, and this machine stands where they do not: so a name is resolved here,
 * every address of it must be a public one, and the connection goes to the address that was judged; each redirection anew. What
 * breaks off is taken up again where it ended (RFC 9110 section 14). Whether the bytes are the right ones is for a checksum to say.
 */
import { lookup } from "node:dns";
import { createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import ipaddr from "ipaddr.js";
import { ImageError } from "./manifest.ts";

export interface DownloadOptions {
  /** Addresses that may be asked: by default those of the public internet. */
  readonly allows?: (address: string) => boolean;
  readonly signal?: AbortSignal;
  /** Bytes, of all that there will be if the other side says so. */
  readonly progress?: (done: number, total: number | null) => void;
  /** Milliseconds before the first repetition, twice as many before each further one; 1000 by default. */
  readonly pause?: number;
}

const redirections = 5;
/** Attempts that bring nothing, one after the other. */
const patience = 5;
const silence = 60_000;

/** Whether it is an address of the public internet, by IANA's registries of special-purpose addresses. */
export function isPublicAddress(text: string): boolean {
  return ipaddr.isValid(text) && ipaddr.process(text).range() === "unicast";
}

const refusePrivate = (host: string): ImageError =>
  new ImageError("address", `"${host}" has an address that is not of the public internet.`);

const noRoom = (cause?: unknown): ImageError =>
  new ImageError("full", "There is not enough room on this machine for the image.", cause);

const lookupAllowed =
  (allows: (address: string) => boolean): LookupFunction =>
  (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, found) => {
      if (error) return done(error, "");
      if (!found.every(({ address }) => allows(address))) return done(refusePrivate(host), "");
      if (options.all) return done(null, found);
      const [first] = found;
      return first ? done(null, first.address, first.family) : done(new Error(`no address of ${host}`), "");
    });
  };

/** Throws an `ImageError` when the address is none that we would ask. */
export function parseSource(text: string, options: Pick<DownloadOptions, "allows">): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !["http:", "https:"].includes(url.protocol))
    throw new ImageError("address", "The address of an image begins with https:// or http://.");
  if (url.username !== "" || url.password !== "")
    throw new ImageError("address", "The address of an image must hold no user name and no password.");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && !(options.allows ?? isPublicAddress)(host)) throw refusePrivate(host);
  return url;
}

/** Trouble that may be gone the next time. */
class Interruption extends Error {}

/** Resolves to the answer after all redirections, of a status that was expected, its body not yet read. */
async function ask(
  start: URL,
  headers: Readonly<Record<string, string>>,
  expected: readonly number[],
  options: DownloadOptions,
): Promise<IncomingMessage> {
  let url = start;
  for (let step = 0; step <= redirections; step++) {
    const answer = await askOnce(url, headers, options);
    const { statusCode = 0 } = answer;
    const location = answer.headers.location;
    if (expected.includes(statusCode)) return answer;
    answer.destroy();
    if (![301, 302, 303, 307, 308].includes(statusCode) || location === undefined) throw explain(url, statusCode);
    const next = parseSource(URL.canParse(location, url.href) ? new URL(location, url).href : location, options);
    if (url.protocol === "https:" && next.protocol !== "https:")
      throw new ImageError("address", `"${url.host}" redirects from https to http.`);
    url = next;
  }
  throw new ImageError("unreachable", `"${start.host}" redirects more than ${redirections} times.`);
}

function askOnce(
  url: URL,
  headers: Readonly<Record<string, string>>,
  options: DownloadOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? requestHttps : requestHttp)(url, {
      agent: false,
      headers: { "accept-encoding": "identity", "user-agent": "brume", ...headers },
      timeout: silence,
      lookup: lookupAllowed(options.allows ?? isPublicAddress),
      ...(options.signal && { signal: options.signal }),
    });
    request.on("timeout", () => request.destroy(new Error(`nothing came for ${silence / 1000} s`)));
    request.on("error", (error) => {
      reject(error instanceof ImageError ? error : new Interruption(error.message, { cause: error }));
    });
    request.on("response", resolve);
    request.end();
  });
}

function explain(url: URL, status: number): Error {
  const text = `"${url.host}" answered ${status} for ${url.pathname}`;
  if (status >= 500 || status === 429 || status === 408) return new Interruption(text);
  return new ImageError(status === 404 || status === 410 ? "missing" : "unreachable", `${text}.`);
}

/** Repeats what was interrupted, until several attempts in a row have brought nothing. */
async function persist<Result>(
  url: URL,
  options: DownloadOptions,
  work: () => Promise<Result>,
  hasGrown: () => Promise<boolean>,
): Promise<Result> {
  for (let fruitless = 0; ; fruitless++) {
    try {
      return await work();
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof ImageError) throw error;
      if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw noRoom(error);
      if (await hasGrown()) fruitless = 0;
      if (fruitless + 1 >= patience)
        throw new ImageError("unreachable", `"${url.host}" could not be read: ${(error as Error).message}.`, error);
      await sleep((options.pause ?? 1000) * 2 ** fruitless, undefined, {
        ...(options.signal && { signal: options.signal }),
      });
    }
  }
}

/** A small text, such as a list of checksums. Throws an `ImageError`, or whatever `signal` says. */
export async function downloadText(url: URL, options: DownloadOptions): Promise<string> {
  const most = 4_000_000;
  const read = async () => {
    const answer = await ask(url, {}, [200], options);
    let text = "";
    answer.setEncoding("latin1");
    for await (const chunk of answer) {
      text += chunk as string;
      if (text.length > most)
        throw new ImageError("unreachable", `"${url.host}" sends a list of checksums without end.`);
    }
    return text;
  };
  return persist(url, options, read, () => Promise.resolve(false));
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => ({ size: 0 }))).size;

/**
 * Brings the file to `path`, going on with what is there. `most`: bytes that it may have. Throws an `ImageError`, or whatever `signal`
 * says; what has come by then stays.
 */
export async function downloadFile(url: URL, path: string, most: number, options: DownloadOptions): Promise<void> {
  let have = await sizeOf(path);
  const read = async () => {
    have = await sizeOf(path);
    const answer = await ask(url, have > 0 ? { range: `bytes=${have}-` } : {}, [200, 206, 416], options);
    const status = answer.statusCode ?? 0;
    const range = /^bytes (?:(\d+)-\d+|\*)\/(\d+)$/.exec(answer.headers["content-range"] ?? "");
    if (status === 416) {
      answer.destroy();
      if (Number(range?.[2]) === have) return;
      // What we have is of something else.
      await pipeline([], createWriteStream(path));
      throw new Interruption("the file has changed");
    }
    const start = status === 206 && Number(range?.[1]) === have ? have : 0;
    if (status === 206 && start !== have) {
      answer.destroy();
      throw new ImageError("unreachable", `"${url.host}" sends another part than asked for.`);
    }
    const length = Number(answer.headers["content-length"] ?? Number.NaN);
    const total = Number.isNaN(length) ? null : start + length;
    let done = start;
    if ((total ?? 0) > most) {
      answer.destroy();
      throw noRoom();
    }
    const count = new Transform({
      transform(chunk: Buffer, _encoding, forward) {
        done += chunk.length;
        if (done > most) return forward(noRoom());
        options.progress?.(done, total);
        forward(null, chunk);
      },
    });
    await pipeline(answer, count, createWriteStream(path, { flags: start > 0 ? "a" : "w" }), {
      ...(options.signal && { signal: options.signal }),
    });
    if (total !== null && done !== total) throw new Interruption("the connection ended early");
  };
  await persist(url, options, read, async () => (await sizeOf(path)) > have);
}
