/**
 * Downloads files over HTTP. Users choose the addresses, and the host may reach networks that users may not. So names are resolved here,
 * all their addresses must be public and not of the host, and the connection uses a checked address; each redirection is checked again. An interrupted download
 * resumes (RFC 9110 section 14). The caller verifies the checksum.
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
import { createJudge } from "../../../base/publicaddress.ts";
import { ImageError, notEnoughSpace } from "./manifest.ts";

/** Limits and progress of a download. */
export interface DownloadOptions {
  /** Whether an IP address may be connected to; by default only those of the public internet that are not of the host. */
  readonly allows?: (address: string) => boolean;
  /** Replaces the resolver of the host. */
  readonly lookup?: typeof lookup;
  readonly signal?: AbortSignal;
  /** Called with the bytes done and, if the server sends it, the total. */
  readonly progress?: (done: number, total: number | null) => void;
  /** Milliseconds before the first retry, doubled for each further one; 1000 by default. */
  readonly pause?: number;
}

const maxRedirections = 5;
/** Maximum number of consecutive attempts without new bytes. */
const maxAttempts = 5;
/** Milliseconds without data before a connection fails. */
const idleTimeout = 60_000;

const isPublicAddress = createJudge([]);

const refusePrivate = (host: string): ImageError =>
  new ImageError("address", `"${host}" has an address of this host, or none of the public internet.`);

const lookupAllowed =
  ({ allows = isPublicAddress, ...from }: DownloadOptions): LookupFunction =>
  (host, options, done) => {
    (from.lookup ?? lookup)(host, { ...options, all: true }, (error, found) => {
      if (error) return done(error, "");
      if (!found.every(({ address }) => allows(address))) return done(refusePrivate(host), "");
      if (options.all) return done(null, found);
      const [first] = found;
      return first ? done(null, first.address, first.family) : done(new Error(`${host} has no address`), "");
    });
  };

/** Parses the address of a download. Throws an `ImageError` if it is not permitted. */
export function parseSource(text: string, options: Pick<DownloadOptions, "allows">): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !["http:", "https:"].includes(url.protocol))
    throw new ImageError("address", "The address of an image must begin with https:// or http://.");
  if (url.username !== "" || url.password !== "")
    throw new ImageError("address", "The address of an image must not contain a user name or password.");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && !(options.allows ?? isPublicAddress)(host)) throw refusePrivate(host);
  return url;
}

/** A temporary error, after which a retry may succeed. */
class Interruption extends Error {}

/** Sends a request and follows redirections. Resolves to a response with an expected status, its body not yet read. */
async function fetchResponse(
  start: URL,
  headers: Readonly<Record<string, string>>,
  expected: readonly number[],
  options: DownloadOptions,
): Promise<IncomingMessage> {
  let url = start;
  for (let step = 0; step <= maxRedirections; step++) {
    const response = await sendRequest(url, headers, options);
    const { statusCode = 0 } = response;
    const location = response.headers.location;
    if (expected.includes(statusCode)) return response;
    response.destroy();
    if (![301, 302, 303, 307, 308].includes(statusCode) || location === undefined) throw statusError(url, statusCode);
    const next = parseSource(URL.canParse(location, url.href) ? new URL(location, url).href : location, options);
    if (url.protocol === "https:" && next.protocol !== "https:")
      throw new ImageError("address", `"${url.host}" redirects from https to http.`);
    url = next;
  }
  throw new ImageError("unreachable", `"${start.host}" redirects more than ${maxRedirections} times.`);
}

function sendRequest(
  url: URL,
  headers: Readonly<Record<string, string>>,
  options: DownloadOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? requestHttps : requestHttp)(url, {
      agent: false,
      headers: { "accept-encoding": "identity", "user-agent": "brume", ...headers },
      timeout: idleTimeout,
      lookup: lookupAllowed(options),
      ...(options.signal && { signal: options.signal }),
    });
    request.on("timeout", () => request.destroy(new Error(`no data for ${idleTimeout / 1000} s`)));
    request.on("error", (error) => {
      reject(error instanceof ImageError ? error : new Interruption(error.message, { cause: error }));
    });
    request.on("response", resolve);
    // Without this listener, a switch of protocols ends the connection without any other event.
    request.on("upgrade", (response, socket) => {
      socket.destroy();
      reject(statusError(url, response.statusCode ?? 0));
    });
    request.end();
  });
}

function statusError(url: URL, status: number): Error {
  const text = `"${url.host}" returned status ${status} for ${url.pathname}`;
  if (status >= 500 || status === 429 || status === 408) return new Interruption(text);
  return new ImageError(status === 404 || status === 410 ? "missing" : "unreachable", `${text}.`);
}

/** Retries interrupted work until `maxAttempts` consecutive attempts have brought no new bytes. */
async function retry<Result>(
  url: URL,
  options: DownloadOptions,
  work: () => Promise<Result>,
  hasGrown: () => Promise<boolean>,
): Promise<Result> {
  for (let attempts = 0; ; attempts++) {
    try {
      return await work();
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof ImageError) throw error;
      if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw notEnoughSpace(null, error);
      if (await hasGrown()) attempts = 0;
      if (attempts + 1 >= maxAttempts)
        throw new ImageError("unreachable", `"${url.host}" could not be read: ${(error as Error).message}.`, error);
      await sleep((options.pause ?? 1000) * 2 ** attempts, undefined, {
        ...(options.signal && { signal: options.signal }),
      });
    }
  }
}

/** Downloads a small text, such as a checksum file. Throws an `ImageError` or the reason of `signal`. */
export async function downloadText(url: URL, options: DownloadOptions): Promise<string> {
  const maxBytes = 4_000_000;
  const read = async () => {
    const response = await fetchResponse(url, {}, [200], options);
    let text = "";
    response.setEncoding("latin1");
    for await (const chunk of response) {
      text += chunk as string;
      if (text.length > maxBytes)
        throw new ImageError("unreachable", `"${url.host}" sends a checksum file of more than ${maxBytes} bytes.`);
    }
    return text;
  };
  return retry(url, options, read, () => Promise.resolve(false));
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => ({ size: 0 }))).size;

/**
 * Downloads to `path`, resuming an existing part. `maxBytes`: size limit. Throws an `ImageError` or the reason of `signal`; the part that
 * was downloaded stays.
 */
export async function downloadFile(url: URL, path: string, maxBytes: number, options: DownloadOptions): Promise<void> {
  let have = await sizeOf(path);
  const read = async () => {
    have = await sizeOf(path);
    const response = await fetchResponse(url, have > 0 ? { range: `bytes=${have}-` } : {}, [200, 206, 416], options);
    const status = response.statusCode ?? 0;
    const range = /^bytes (?:(\d+)-\d+|\*)\/(\d+)$/.exec(response.headers["content-range"] ?? "");
    if (status === 416) {
      response.destroy();
      if (Number(range?.[2]) === have) return;
      // The existing part belongs to another version of the file.
      await pipeline([], createWriteStream(path));
      throw new Interruption("the file has changed");
    }
    const start = status === 206 && Number(range?.[1]) === have ? have : 0;
    if (status === 206 && start !== have) {
      response.destroy();
      throw new ImageError("unreachable", `"${url.host}" sends another range than requested.`);
    }
    const length = Number(response.headers["content-length"] ?? Number.NaN);
    const total = Number.isNaN(length) ? null : start + length;
    let done = start;
    if (total !== null && total > maxBytes) {
      response.destroy();
      throw notEnoughSpace({ needed: total, free: maxBytes });
    }
    const count = new Transform({
      transform(chunk: Buffer, _encoding, forward) {
        done += chunk.length;
        if (done > maxBytes) return forward(notEnoughSpace(null));
        options.progress?.(done, total);
        forward(null, chunk);
      },
    });
    await pipeline(response, count, createWriteStream(path, { flags: start > 0 ? "a" : "w" }), {
      ...(options.signal && { signal: options.signal }),
    });
    if (total !== null && done !== total) throw new Interruption("the connection ended early");
  };
  await retry(url, options, read, async () => (await sizeOf(path)) > have);
}
