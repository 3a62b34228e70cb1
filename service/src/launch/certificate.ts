/** Connects the certificate of the API, from own files or from an authority, with the service and the plain HTTP server beside it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { type ChallengeOptions, createChallengeRecords } from "../dns/challenge.ts";
import { createAuthority } from "../drivers/authority/thread.ts";
import type { CertificateCheck } from "../health.ts";
import type { Service } from "../service.ts";
import { createCertificateEvents } from "../tls/events.ts";
import { openCertificateFiles } from "../tls/files.ts";
import { createRedirect } from "../tls/redirect.ts";
import { openRenewer } from "../tls/renewer.ts";
import { createServed, type Served } from "../tls/served.ts";
import { certificateName, orderedFolder } from "./folder.ts";
import type { KeyTexts } from "./parent.ts";

/** The certificate of the API. */
export interface Certificate {
  readonly pair: KeyTexts;
  readonly check: CertificateCheck;
  /** Name of the API in URLs; null: its address. */
  readonly name: string | null;
  /** Starts the renewer, the use of changed files, and the plain HTTP server. `port`: that of the API. */
  begin(service: Service, dns: Pick<ChallengeOptions, "zones" | "nameserver">, port: number): Promise<void>;
  /** Resolves when no order runs. */
  close(): Promise<void>;
}

/** Where the certificate comes from. */
export interface CertificateOptions {
  readonly log: Log;
  /** Folder of database, key and token. */
  readonly folder: string;
  /** Texts of the own files; null: there are none. */
  readonly tls: KeyTexts | null;
  /** Calls the listener when the own files have changed. */
  readonly onTls: (listener: (tls: KeyTexts) => void) => void;
}

/** Opens the certificate; null: HTTP without TLS. */
export async function openCertificate(config: Config, options: CertificateOptions): Promise<Certificate | null> {
  const { acme, redirect } = config;
  const { log, folder, tls } = options;
  const renewer =
    acme === null
      ? null
      : await openRenewer({
          wanted: acme,
          authority: createAuthority(),
          files: openCertificateFiles(join(folder, orderedFolder)),
          clock: systemClock,
          log,
          random: Math.random,
        });
  const served: Served | null = renewer?.served ?? (tls && createServed(tls));
  if (served === null) return null;
  let portOfApi = 443;
  const plain = redirect && createRedirect({ names: () => acme?.names ?? served.info().names, port: () => portOfApi });

  const showPublic = ({ certificate }: KeyTexts): Promise<void> =>
    writeFile(join(folder, certificateName), certificate).catch((error: unknown) =>
      log("warn", `The file ${certificateName} was not written.`, { error }),
    );

  return {
    pair: served.pair(),
    check: (now) => ({ ...served.check(now), expires: served.info().notAfter }),
    name: acme?.names.find((name) => !name.startsWith("*.")) ?? null,
    async begin(service, dns, port) {
      portOfApi = port;
      await showPublic(served.pair());
      const report = createCertificateEvents(service.store, systemClock, acme?.names ?? served.info().names);
      served.onChange((pair) => {
        service.setTls(pair);
        void showPublic(pair);
      });
      options.onTls((pair) => {
        const { certificate, key } = served.pair();
        try {
          served.replace(pair);
          // Only permissions or the time of a file have changed.
          if (pair.certificate === certificate && pair.key === key) return;
          log("info", "The API uses the changed certificate.", { names: served.info().names });
        } catch (error) {
          served.setProblem(`the changed files are not used: ${(error as Error).message}`);
          log("warn", "The changed certificate of the API is not used.", { error });
          return;
        }
        report("certificate.changed", `${served.info().names.join(", ")}, from changed files`).catch((error: unknown) =>
          log("error", "The event of the changed certificate was not stored.", { error }),
        );
      });
      if (plain !== null && redirect !== null)
        await plain.listen(redirect.host, redirect.port).catch((error: unknown) => {
          throw new Error(`BRUME_TLS_REDIRECT: ${(error as Error).message}`, { cause: error });
        });
      const records = createChallengeRecords({
        ...dns,
        store: service.store,
        clock: systemClock,
        nameServers: config.dns.names,
      });
      renewer?.run({ records, tokens: plain?.tokens ?? null, report });
    },
    async close() {
      plain?.close();
      await renewer?.close();
    },
  };
}
