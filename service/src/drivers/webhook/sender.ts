/**
 * Sends webhooks over HTTP. It resolves the name of the endpoint itself, checks each address, and connects to a checked address, so that a
 * second lookup cannot return another one. It follows no redirects, uses no proxy, and limits the duration and size of responses.
 */
import { lookup } from "node:dns";
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { createJudge } from "../../base/publicaddress.ts";
import type { Answer, Message, Sender } from "./interface.ts";

/** Options of `createSender`. */
export interface SenderOptions {
  /** Addresses and blocks that webhooks may call although they are not public. */
  readonly allow: readonly string[];
  /** Time limit of one delivery in milliseconds. */
  readonly time?: number;
  /** Replaces the resolver of the host. */
  readonly lookup?: typeof lookup;
  /** Returns the addresses of the host. */
  readonly own?: () => readonly string[];
}

/** Bytes of a response that are read; the rest is dropped. */
const mostRead = 16 * 1024;
/** Time limit in milliseconds for resolving a name when a webhook is created. */
const judgeTime = 2000;

/** Why a connection failed, by the code of the error. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refused the connection",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  EHOSTUNREACH: "no route leads to its host",
  ENETUNREACH: "no route leads to its network",
  ETIMEDOUT: "it did not accept the connection in time",
  ENOTFOUND: "its name does not exist",
  EAI_AGAIN: "no name server answered for its name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is from an unknown authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is from an unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate is from an unknown authority",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  EPROTO: "TLS could not be negotiated",
};

class Refused extends Error {}
class TimedOut extends Error {}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");
const refuse = (host: string): Refused =>
  new Refused(`"${host}" has an address that webhooks may not call (BRUME_WEBHOOK_ALLOW allows more).`);

/** Creates a sender with its own connection pools. */
export function createSender({ allow, time = 10_000, own, ...options }: SenderOptions): Sender {
  const isAllowed = createJudge(allow, own);
  const resolve = options.lookup ?? lookup;
  const settings = { keepAlive: true, maxFreeSockets: 16, timeout: 30_000, proxyEnv: {} };
  const agents = { "http:": new HttpAgent(settings), "https:": new HttpsAgent(settings) };

  const judged: LookupFunction = (host, wanted, done) => {
    resolve(host, { ...wanted, all: true }, (error, found) => {
      if (error) return done(error, "");
      if (found.length === 0 || !found.every(({ address }) => isAllowed(address))) return done(refuse(host), "");
      if (wanted.all) return done(null, found);
      const [first] = found;
      done(null, first?.address ?? "", first?.family ?? 4);
    });
  };

  /** Also checks the remote address of the connection before anything is written. */
  function guard(request: ClientRequest, host: string): void {
    request.on("socket", (socket: Socket) => {
      const check = (): void => {
        if (!isAllowed(socket.remoteAddress ?? "")) request.destroy(refuse(host));
      };
      if (socket.connecting) socket.once("connect", check);
      else check();
    });
  }

  function exchange({ url, headers, body }: Message, signal: AbortSignal): Promise<number> {
    return new Promise((done, failed) => {
      const target = new URL(url);
      const host = hostOf(target);
      if (isIP(host) !== 0 && !isAllowed(host)) throw refuse(host);
      const isSecure = target.protocol === "https:";
      const request = (isSecure ? requestHttps : requestHttp)(target, {
        method: "POST",
        agent: isSecure ? agents["https:"] : agents["http:"],
        headers: { ...headers, "content-length": Buffer.byteLength(body) },
        lookup: judged,
      });
      guard(request, host);
      // One timer and one listener, because combined abort signals cost more than the request itself.
      const timer = setTimeout(() => request.destroy(new TimedOut()), time);
      const abort = (): void => void request.destroy(new Error("aborted"));
      signal.addEventListener("abort", abort);
      if (signal.aborted) abort();
      request.on("close", () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      });
      request.on("error", failed);
      // Without this listener, a switch of protocols ends the connection without any other event.
      request.on("upgrade", (response: IncomingMessage, socket: Socket) => {
        socket.destroy();
        done(response.statusCode ?? 0);
      });
      request.on("response", (response: IncomingMessage) => {
        let size = 0;
        const end = (): void => done(response.statusCode ?? 0);
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > mostRead) response.destroy();
        });
        response.on("end", end).on("close", end).on("error", end);
      });
      request.end(body);
    });
  }

  return {
    async send(message, signal): Promise<Answer> {
      try {
        const status = await exchange(message, signal);
        return { status, error: status >= 200 && status < 300 ? null : `The endpoint returned status ${status}.` };
      } catch (error) {
        if (error instanceof TimedOut)
          return { status: null, error: `The endpoint did not respond within ${time / 1000} seconds.` };
        const { message: text, code } = error as NodeJS.ErrnoException;
        return {
          status: null,
          error:
            error instanceof Refused ? text : `Could not reach the endpoint: ${reasons[code ?? ""] ?? code ?? text}.`,
        };
      }
    },
    judge(url) {
      const host = hostOf(new URL(url));
      const why = "must not lead to an address that webhooks may not call; BRUME_WEBHOOK_ALLOW allows more";
      if (isIP(host) !== 0) return Promise.resolve(isAllowed(host) ? null : why);
      return new Promise((done) => {
        // A name that does not resolve now is not refused: each delivery resolves it again.
        const timer = setTimeout(() => done(null), judgeTime);
        resolve(host, { all: true }, (error, found) => {
          clearTimeout(timer);
          done(error || found.every(({ address }) => isAllowed(address)) ? null : why);
        });
      });
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}
