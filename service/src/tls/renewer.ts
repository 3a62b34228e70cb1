/**
 * Keeps a certificate of an authority for the API: orders the first one, renews it in time, and repeats failed orders with growing pauses.
 * Until the first certificate the API serves one that it signs itself. An attempt is stored before it begins, so a service that ends and
 * starts again and again does not exceed the limits of the authority.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Authority, Challenge, KeyPair, Method } from "../drivers/authority/interface.ts";
import type { Attempt, CertificateFiles } from "./files.ts";
import { covers, pauseAfter, readPair, renewalOf, restartPause } from "./model/certificate.ts";
import { createServed, type Served } from "./served.ts";

/** What to order. */
export interface Wanted {
  /** DNS names, ASCII in lower case, also `*.example.com`. */
  readonly names: readonly string[];
  readonly contact: string | null;
  /** URL of the authority's directory. */
  readonly directory: string;
}

type ReportType = "certificate.changed" | "certificate.failed";

/** How names are proven, and what it notifies. */
export interface RenewerParts {
  /** Records in domains of this service. */
  readonly records: {
    isHosted(name: string): Promise<boolean>;
    present(challenges: readonly Challenge[], signal: AbortSignal): Promise<void>;
    remove(names: readonly string[]): Promise<void>;
  };
  /** Files of the plain HTTP server by token; null: there is none. */
  readonly tokens: Map<string, string> | null;
  /** Reports a new certificate, or the first failure in a row. */
  readonly report: (type: ReportType, detail: string) => Promise<void>;
}

/** Orders and renews the certificate. */
export interface Renewer {
  readonly served: Served;
  /** Orders and renews until `close`. */
  run(parts: RenewerParts): void;
  /** Ends a running order. Resolves when its challenges are removed. */
  close(): Promise<void>;
}

/** Dependencies of `openRenewer`. */
export interface RenewerOptions {
  readonly wanted: Wanted;
  readonly authority: Authority;
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
  /** Milliseconds between two checks whether something is due. */
  readonly period?: number;
}

const checkPeriod = 2000;
const orderTime = 10 * 60_000;
const temporaryDays = 365;
const longestReason = 300;

const isWildcard = (name: string): boolean => name.startsWith("*.");
const plain = (name: string): string => name.replace(/^\*\./, "");
const sameNames = (one: readonly string[], other: readonly string[]): boolean =>
  [...one].sort().join() === [...other].sort().join();
const textOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, " ").slice(0, longestReason);

/** Reads the stored certificate, or creates a temporary one. */
export async function openRenewer(options: RenewerOptions): Promise<Renewer> {
  const { wanted, authority, files, clock, log, random, period = checkPeriod } = options;
  const closing = new AbortController();
  const stored = await files.readPair();
  let source = "";
  let served: Served | null = null;
  if (stored !== null)
    try {
      served = createServed(stored.pair);
      source = stored.directory;
    } catch (error) {
      log("warn", "The stored certificate of the API is damaged; another one is ordered.", { error });
    }
  const current = served ?? createServed(await authority.selfSign(wanted.names, temporaryDays), true);
  const renewal = (): number => {
    const info = current.info();
    return source === wanted.directory && covers(info, wanted.names) ? renewalOf(info) : 0;
  };
  let attempt = await files.readAttempt();
  /** Names whose challenges a crash may have left. */
  const left = (attempt?.names ?? []).map(plain);
  if (attempt !== null && (attempt.directory !== wanted.directory || !sameNames(attempt.names, wanted.names)))
    attempt = null;
  // Perhaps the operator has removed the cause before this start. A time in the future was stored before the clock was set back.
  if (attempt !== null)
    attempt = { ...attempt, next: Math.min(attempt.next, Math.min(attempt.at, clock.now()) + restartPause) };
  let running: Promise<void> = Promise.resolve();

  function describeFailure({ failures, reason, next }: Attempt): string {
    const times = failures === 1 ? "once" : `${failures} times`;
    return `the order failed ${times}: ${reason}; next attempt ${new Date(next).toISOString().slice(0, 16)}Z`;
  }

  /** Returns the methods that can prove all names, the preferred one first. */
  async function methodsOf({ records, tokens }: RenewerParts): Promise<Method[]> {
    const hosted = await Promise.all(wanted.names.map((name) => records.isHosted(plain(name))));
    const isFile = tokens !== null && !wanted.names.some(isWildcard);
    return [...(hosted.every(Boolean) ? (["dns-01"] as const) : []), ...(isFile ? (["http-01"] as const) : [])];
  }

  const whyNoMethod = (hasFiles: boolean): string => {
    const domain = "the domain is not on this service";
    if (hasFiles) return `nothing can be ordered: ${domain}, and a wildcard cannot be proven over HTTP`;
    return `nothing can be ordered: ${domain}, and BRUME_TLS_REDIRECT is not set`;
  };

  async function accountKey(): Promise<string> {
    const known = await files.readAccountKey(wanted.directory);
    if (known !== null) return known;
    const created = await authority.createAccountKey();
    await files.writeAccountKey(wanted.directory, created);
    return created;
  }

  async function order(method: Method, { records, tokens }: RenewerParts): Promise<KeyPair> {
    const proven = wanted.names.map(plain);
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(orderTime)]);
    const used: string[] = [];
    let presenting: Promise<void> = Promise.resolve();
    const clean = async (): Promise<void> => {
      for (const token of used) tokens?.delete(token);
      await records.remove([...proven, ...left]);
    };
    try {
      // Those that a crash left.
      await clean();
      return await authority.order(
        { ...wanted, method, accountKey: await accountKey() },
        async (challenges) => {
          if (method === "dns-01") {
            presenting = records.present(challenges, signal);
            return presenting;
          }
          for (const { token, value } of challenges) {
            tokens?.set(token, value);
            used.push(token);
          }
        },
        signal,
      );
    } finally {
      // After the signal the order ends first; a record that is created meanwhile is removed too.
      await presenting.catch(() => {});
      await clean().catch((error: unknown) => log("warn", "Challenges of a certificate were not removed.", { error }));
    }
  }

  /** Reports what has happened. A report that cannot be stored changes nothing about it. */
  async function report(parts: RenewerParts, type: ReportType, detail: string): Promise<void> {
    await parts
      .report(type, detail)
      .catch((error: unknown) => log("warn", "An event of the certificate could not be stored.", { type, error }));
  }

  async function attemptOrder(parts: RenewerParts, method: Method): Promise<void> {
    const failures = attempt?.failures ?? 0;
    const { names, directory } = wanted;
    const now = clock.now();
    // In force if this process ends before the order does.
    const next = now + pauseAfter(failures + 1, random());
    attempt = { names, directory, failures, at: now, next, reason: attempt?.reason ?? "" };
    await files.writeAttempt(attempt);
    log("info", "Ordering a certificate for the API.", { names, directory, method });
    try {
      const pair = await order(method, parts);
      const info = readPair(pair);
      if (!covers(info, names)) throw new Error(`the certificate is for ${info.names.join(", ")} only`);
      await files.writePair(pair, directory);
      const due = renewalOf(info);
      const isLater = due > clock.now();
      if (isLater) await files.removeAttempt();
      source = directory;
      current.replace(pair);
      // Without a pause, the next order would follow at once, until the authority accepts no more for these names.
      if (!isLater)
        throw new Error(
          "the new certificate is due for renewal already, so the clock of this host or of the authority is wrong",
        );
      attempt = null;
      current.setRenewal(due);
      log("info", "The API has a new certificate.", { names, notAfter: new Date(info.notAfter).toISOString() });
    } catch (error) {
      if (closing.signal.aborted) return;
      const count = failures + 1;
      attempt = {
        ...attempt,
        names,
        directory,
        failures: count,
        at: now,
        next: clock.now() + pauseAfter(count, random()),
        reason: textOf(error),
      };
      await files.writeAttempt(attempt);
      log("warn", "No certificate for the API could be ordered.", { names, method, failures: count, error });
      if (count === 1) await report(parts, "certificate.failed", describeFailure(attempt));
      return;
    }
    const until = new Date(current.info().notAfter).toISOString();
    await report(parts, "certificate.changed", `${names.join(", ")}, valid until ${until}`);
  }

  async function check(parts: RenewerParts): Promise<void> {
    const now = clock.now();
    const due = renewal();
    current.setRenewal(due === 0 ? null : due);
    if (now < due) return;
    const failed = attempt !== null && attempt.reason !== "" ? describeFailure(attempt) : null;
    current.setProblem(failed);
    if (attempt !== null && now < attempt.next && attempt.at <= now) return;
    const methods = await methodsOf(parts);
    // The next attempt uses the other method if there are two.
    const method = methods[(attempt?.failures ?? 0) % Math.max(methods.length, 1)];
    if (method === undefined) return current.setProblem(whyNoMethod(parts.tokens !== null));
    await attemptOrder(parts, method);
  }

  async function repeat(parts: RenewerParts): Promise<void> {
    while (!closing.signal.aborted) {
      await check(parts).catch((error: unknown) => log("error", "The check of the certificate failed.", { error }));
      await sleep(period, undefined, { ref: false, signal: closing.signal }).catch(() => {});
    }
  }

  return {
    served: current,
    run(parts) {
      running = repeat(parts);
    },
    async close() {
      closing.abort(new Error("The service is stopping."));
      await running;
    },
  };
}
