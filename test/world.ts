/**
 * A whole Brume for one test: the real service on a fresh database, with the built-in name server on a port of its own, spoken to
 * through the SDK. Nothing in it is mocked; what a test needs beside it (a second project, a weak token) it orders through the API.
 */
import { randomBytes } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { type Client, createClient } from "@brume/api/client.ts";
import { type Scope, scopes } from "@brume/api/operation.ts";
import { ensureFirst } from "../service/src/account/first.ts";
import { systemClock } from "../service/src/base/clock.ts";
import { type Log, silentLog } from "../service/src/base/log.ts";
import { createSealer } from "../service/src/base/secret.ts";
import { createBuiltin } from "../service/src/drivers/nameserver/builtin.ts";
import type { Nameserver } from "../service/src/drivers/nameserver/port.ts";
import type { HttpLimits } from "../service/src/http/server.ts";
import { createService, type Service } from "../service/src/service.ts";
import type { Store } from "../service/src/store/db.ts";
import { type Database, type Kind, startDatabase } from "./postgres.ts";

export interface World {
  readonly kind: Kind;
  readonly database: Database;
  store: Store;
  service: Service;
  nameserver: Nameserver;
  /** `http://127.0.0.1:port` */
  url: string;
  /** Of token 1, with all scopes. */
  readonly token: string;
  client: Client;
  /** Asks the name server itself. */
  resolver: Resolver;
  /** `host:port` of the name server. */
  dns: string;
  clientOf(token: string): Client;
  /** A client with a token of its own, made through the API. */
  as(scopes: readonly Scope[], restriction?: object): Promise<Client>;
  /** A second project with a client that has all scopes there. */
  neighbour(): Promise<Client>;
  /** Ends the service as SIGTERM does and starts it again on the same database. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** What differs from the usual world. */
interface WorldOptions {
  readonly log?: Log;
  readonly nameserver?: Nameserver;
  readonly limits?: Partial<HttpLimits>;
}

export async function createWorld(kind: Kind, options: WorldOptions = {}): Promise<World> {
  const database = await startDatabase(kind);
  const token = randomBytes(32).toString("hex");
  const sealer = createSealer(randomBytes(32));
  let neighbours = 0;

  const open = async (store: Store) => {
    await ensureFirst(store, systemClock, token);
    const log = options.log ?? silentLog;
    const nameserver =
      options.nameserver ??
      (await createBuiltin({
        host: "127.0.0.1",
        port: 0,
        rateLimit: 0,
        transfer: { addresses: [], keys: [], notify: [] },
        log,
      }));
    const service = createService({
      store,
      nameserver,
      clock: systemClock,
      random: Math.random,
      log,
      sealer,
      version: "0.0.0",
      dnsNames: ["ns1.brume.internal"],
      resolvers: [],
      lenientHttp: false,
      tls: null,
      ...(options.limits !== undefined && { limits: options.limits }),
    });
    const url = `http://${await service.listen("127.0.0.1", 0)}`;
    const dns = (await nameserver.observe()).address;
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    resolver.setServers([dns]);
    return { store, service, nameserver, url, client: clientAt(url, token), resolver, dns };
  };
  const clientAt = (url: string, value: string): Client => createClient({ url, token: value, retries: 0 });

  const world: World = {
    kind,
    database,
    token,
    ...(await open(database.store)),
    clientOf: (value) => clientAt(world.url, value),
    async as(wanted, restriction = {}) {
      const made = await world.client.createToken({ body: { Name: "weak", Scopes: [...wanted], ...restriction } });
      return world.clientOf(made.Token);
    },
    async neighbour() {
      neighbours += 1;
      const project = await world.client.createProject({ body: { Name: `neighbour-${neighbours}` } });
      return world.as([...scopes], { ProjectID: project.ID });
    },
    async restart() {
      await world.service.close(1000);
      if (options.nameserver === undefined) await world.nameserver.close();
      await world.store.close();
      Object.assign(world, await open(await database.open()));
    },
    async close() {
      await world.service.close(1000);
      await world.nameserver.close();
      await database.close();
    },
  };
  return world;
}
