/**
 * The roof: configuration, database, drivers, service, listen. The only room that names concrete drivers and databases, and the
 * only one that ends the process.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureFirst } from "./account/first.ts";
import { systemClock } from "./base/clock.ts";
import { createLog } from "./base/log.ts";
import { createSealer } from "./base/secret.ts";
import { keepSecret } from "./base/secretfile.ts";
import { type Config, ConfigError, loadConfig } from "./config.ts";
import { createBuiltin } from "./drivers/nameserver/builtin.ts";
import { createService } from "./service.ts";
import { migrate } from "./store/migrate.ts";
import { openPostgres } from "./store/postgres.ts";
import { databaseName, openSqlite } from "./store/sqlite.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** Seconds that requests get to finish after SIGTERM. */
const graceSeconds = 10;

async function start(config: Config): Promise<void> {
  const log = createLog(config.logLevel);
  for (const name of config.unknown) log("warn", `${name} is set, but Brume knows no such setting.`);
  mkdirSync(config.dataFolder, { recursive: true, mode: 0o700 });
  const sealer = createSealer(Buffer.from(config.key ?? keepSecret(config.dataFolder, "key"), "hex"));
  const token = config.token ?? keepSecret(config.dataFolder, "token");

  const store =
    config.databaseUrl === null
      ? await openSqlite(join(config.dataFolder, databaseName), { log })
      : await openPostgres(config.databaseUrl, { log });
  await migrate(store);
  const tokenInForce = await ensureFirst(store, systemClock, token);
  const nameserver = await createBuiltin({
    ...config.dns.listen,
    rateLimit: config.dns.rateLimit,
    transfer: config.dns.transfer,
    log,
  });
  const service = createService({
    store,
    nameserver,
    clock: systemClock,
    random: Math.random,
    log,
    sealer,
    version,
    dnsNames: config.dns.names,
    resolvers: config.dns.resolvers,
    lenientHttp: config.lenientHttp,
    tls: config.tls && {
      certificate: readFileSync(config.tls.certificate, "utf8"),
      key: readFileSync(config.tls.key, "utf8"),
    },
  });

  let stoppingSince: number | null = null;
  const stop = (signal: NodeJS.Signals): void => {
    // Ctrl-C reaches a child of npm twice at once: only a later signal means "now".
    if (stoppingSince !== null) return Date.now() - stoppingSince < 1000 ? undefined : process.exit(1);
    stoppingSince = Date.now();
    log("info", `${signal}: finishing what has begun.`);
    service
      .close(graceSeconds * 1000)
      .then(() => nameserver.close())
      .then(() => store.close())
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log("error", "The service did not stop cleanly.", { error });
          process.exit(1);
        },
      );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);

  const address = await service.listen(config.listen.host, config.listen.port);
  const dns = (await nameserver.observe()).address;
  process.stdout.write(greet(`${config.tls ? "https" : "http"}://${address}`, tokenInForce ? token : null, dns));
  log("info", "ready", { address, dns, database: store.kind, pid: process.pid });
}

/** What a person at the terminal needs to go on, with lines that can be pasted. */
function greet(url: string, token: string | null, dns: string): string {
  const colon = dns.lastIndexOf(":");
  const host = dns.slice(0, colon).replace(/[[\]]/g, "");
  const port = dns.slice(colon + 1);
  const bearer = token ?? "YOUR-TOKEN";
  const post = (path: string, body: object) =>
    `  curl -s -X POST ${url}${path} -H 'Authorization: Bearer ${bearer}' -d '${JSON.stringify(body)}'`;
  return [
    "",
    "Brume is ready.",
    "",
    `  API    ${url}        (reference: ${url}/docs)`,
    `  Token  ${token ?? "token 1 was deleted; use one of yours"}`,
    `  DNS    ${dns}, UDP and TCP`,
    "",
    "A domain, a record, and its answer:",
    "",
    post("/dns", { Name: "example.com" }),
    post("/dns/recorda", { DomainId: 1, Name: "www", IP: "192.0.2.10" }),
    `  dig +short @${host} -p ${port} www.example.com`,
    "",
    "Ctrl-C stops it; what was answered is kept.",
    "",
    "",
  ].join("\n");
}

try {
  await start(loadConfig(process.env));
} catch (error) {
  const known = error instanceof ConfigError || (error instanceof Error && "hint" in error);
  process.stderr.write(
    `Brume did not start: ${known ? (error as Error).message : ((error as Error)?.stack ?? String(error))}\n`,
  );
  process.exit(1);
}
