/**
 * A complete Brume for one test: the real service on a new database, with simulated VMs and networks and the built-in name server on its
 * own port. Tests call it with the SDK, and create other projects and tokens through the API.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@brume/api/client.ts";
import { type Scope, scopes } from "@brume/api/operation.ts";
import { ensureFirst } from "../../service/src/account/first.ts";
import { parseAddresses } from "../../service/src/base/address.ts";
import { type Clock, systemClock } from "../../service/src/base/clock.ts";
import { type Log, silentLog } from "../../service/src/base/log.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import { showSettings } from "../../service/src/config/report.ts";
import { createUploads } from "../../service/src/drivers/content/uploads.ts";
import type { Images, OperatorImage } from "../../service/src/drivers/machine/interface.ts";
import {
  createSim as createMachines,
  type SimOptions,
  type SimulatedMachines,
} from "../../service/src/drivers/machine/sim/sim.ts";
import { type BuiltinOptions, createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import type { Router } from "../../service/src/drivers/router/interface.ts";
import { closedExcept } from "../../service/src/drivers/router/model/closedaddresses.ts";
import { createSim, type SimulatedRouter } from "../../service/src/drivers/router/sim/sim.ts";
import { createThreadSender } from "../../service/src/drivers/webhook/thread.ts";
import type { HttpLimits } from "../../service/src/http/server.ts";
import { createService, type Service, type ServiceOptions } from "../../service/src/service.ts";
import type { Store } from "../../service/src/store/db.ts";
import { type Database, type Kind, startDatabase } from "./databases.ts";
import { serveInThisThread } from "./nameserverthread.ts";

/** A running service and its parts. */
export interface TestService {
  readonly kind: Kind;
  readonly database: Database;
  store: Store;
  service: Service;
  nameserver: Nameserver;
  /** Keeps its networks over a restart of the service, like the networks of a host. */
  readonly router: SimulatedRouter;
  /** Keep running over a restart of the service. */
  readonly machines: SimulatedMachines;
  /** `http://127.0.0.1:port` */
  url: string;
  /** The value of token 1, which has all scopes. */
  readonly token: string;
  client: Client;
  /** Queries the name server of the service. */
  resolver: Resolver;
  /** `host:port` of the name server. */
  dns: string;
  /** Returns a client with this token. */
  clientOf(token: string): Client;
  /** Creates a token through the API, and returns a client with it. */
  as(scopes: readonly Scope[], restriction?: object): Promise<Client>;
  /** Creates a project, and returns a client with all scopes in it. */
  neighbour(): Promise<Client>;
  /** Stops the service as SIGTERM does, and starts it again on the same database. `change`: what happens to the database in between. */
  restart(change?: (store: Store) => Promise<unknown>): Promise<void>;
  close(): Promise<void>;
}

/** Options that differ from the default service. */
interface TestServiceOptions {
  readonly log?: Log;
  readonly clock?: Clock;
  readonly nameserver?: Nameserver;
  /** Networks have IPv6 beside IPv4. */
  readonly ipv6?: boolean;
  readonly publicPool?: string;
  /** Tunnel types that the router supports; default both. */
  readonly offers?: { readonly ipsec: boolean; readonly wireguard: boolean };
  /** Titles of the locations; default `Local`. */
  readonly locations?: readonly string[];
  readonly machines?: Partial<SimOptions>;
  readonly images?: Partial<Images>;
  /** Folder of uploads; default one of its own. */
  readonly uploadFolder?: string;
  /** Resolvers for external names; default none. */
  readonly resolvers?: readonly string[];
  /** PEM texts. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  readonly limits?: Partial<HttpLimits>;
  readonly disk?: ServiceOptions["disk"];
  /** Folder of the built console; default none. */
  readonly consoleFolder?: string;
  readonly keep?: NonNullable<ServiceOptions["keep"]>;
  readonly onReturn?: NonNullable<ServiceOptions["onReturn"]>;
  /** Wraps the store that the service uses. */
  readonly watch?: (store: Store) => Store;
  /** Wraps each driver that the service uses: `router`, `machines`, `consoles`, `images`, `uploads` and `nameserver`. */
  readonly wrapDriver?: <Driver extends object>(driver: Driver, group: string) => Driver;
  /** Secondaries that may transfer zones and receive NOTIFY; default none. */
  readonly transfer?: BuiltinOptions["transfer"];
}

/** The image that every installation contains. */
export const tiny: OperatorImage = {
  name: "brume-tiny",
  title: "Brume Tiny Linux",
  family: "Linux",
  os: "Linux",
  minRam: 128,
  hdd: 1,
  folder: "brume-tiny",
  guest: "tiny",
};

type Simulated = Pick<TestServiceOptions, "ipv6" | "publicPool" | "locations" | "offers" | "images">;

/** Returns a simulated machine driver with the image `tiny`. */
export const simulateGuests = (options: Partial<SimOptions> = {}): SimulatedMachines =>
  createMachines({ now: Date.now, images: [tiny.name], offered: [tiny], ...options });

/** Returns a simulated machine driver that connects each NIC to the simulated router. */
function simulateMachines(router: SimulatedRouter, now: () => number, options: Partial<SimOptions> = {}) {
  const machines = simulateGuests({ now, ...options });
  machines.onDevice(router.plug);
  return machines;
}

/** Returns the options of a service that describe its host: simulated VMs and networks, everything else real. */
export const simulatedHost = (
  router: Router,
  { ipv6, publicPool, locations = ["Local"], offers, images }: Simulated = {},
  machines: SimulatedMachines = simulateGuests(),
  uploadFolder = "/nonexistent",
) => ({
  router,
  machines,
  consoles: machines,
  serversFolder: "/servers",
  machineDetail: "sim: no machine runs",
  engines: { Machine: "sim", Router: "sim" } as const,
  images: { ...machines, ...images },
  uploads: createUploads({ folder: uploadFolder, now: Date.now }),
  cpuOvercommit: 8,
  sender: createThreadSender({ allow: ["127.0.0.0/8"] }),
  randomBytes,
  networks: {
    locations,
    publicPools: [parseAddresses(publicPool ?? "10.64.0.0/16")],
    publicPool6: ipv6 === true ? parseAddresses("fd24:b::/48") : null,
    sharedBlocks: locations.map((_, index) => parseAddresses(`10.${63 - index}.0.0/16`)),
    engines: "sim: no packet flows",
    offers: offers ?? { ipsec: true, wireguard: true },
    resolvers: [],
    forwarders: [],
    nat: "always" as const,
    publicAddress: null,
    wireguardPort: 51_820,
    closed: closedExcept([]),
  },
});

/** Starts a service on a new database and resolves when it listens. Close it after the test. */
export async function createTestService(kind: Kind, options: TestServiceOptions = {}): Promise<TestService> {
  const database = await startDatabase(kind);
  const { uploadFolder = join(tmpdir(), `brume-uploads-${randomUUID()}`) } = options;
  const token = randomBytes(32).toString("hex");
  const sealer = createSealer(randomBytes(32));
  const clock = options.clock ?? systemClock;
  const now = () => clock.now();
  const router = createSim(now);
  const machines = simulateMachines(router, now, options.machines);
  let neighbours = 0;

  const open = async (opened: Store) => {
    const store = options.watch?.(opened) ?? opened;
    await ensureFirst(store, clock, token);
    const log = options.log ?? silentLog;
    const nameserver =
      options.nameserver ??
      (await createBuiltin(
        {
          host: "127.0.0.1",
          port: 0,
          rateLimit: 0,
          transfer: options.transfer ?? { addresses: [], keys: [], notify: [] },
          log,
        },
        serveInThisThread,
      ));
    const host = simulatedHost(router, options, machines, uploadFolder);
    const { wrapDriver = (driver) => driver } = options;
    const service = createService({
      store,
      nameserver: wrapDriver(nameserver, "nameserver"),
      ...host,
      machines: wrapDriver(host.machines, "machines"),
      images: wrapDriver(host.images, "images"),
      consoles: wrapDriver(host.consoles, "consoles"),
      router: wrapDriver(host.router, "router"),
      uploads: wrapDriver(host.uploads, "uploads"),
      clock,
      random: Math.random,
      log,
      sealer,
      version: "0.0.0",
      dnsNames: ["ns1.brume.internal"],
      resolvers: options.resolvers ?? [],
      lenientHttp: false,
      tls: options.tls ?? null,
      settings: showSettings({}, {}),
      ...(options.limits !== undefined && { limits: options.limits }),
      ...(options.consoleFolder !== undefined && { consoleFolder: options.consoleFolder }),
      ...(options.disk !== undefined && { disk: options.disk }),
      ...(options.keep !== undefined && { keep: options.keep }),
      ...(options.onReturn !== undefined && { onReturn: options.onReturn }),
    });
    const url = `http${options.tls ? "s" : ""}://${await service.listen("127.0.0.1", 0)}`;
    const dns = (await nameserver.observe()).address;
    const resolver = new Resolver({ timeout: 20_000, tries: 2 });
    resolver.setServers([dns]);
    return { store, service, nameserver, url, client: clientAt(url, token), resolver, dns };
  };
  const clientAt = (url: string, value: string): Client => createClient({ url, token: value, retries: 0 });

  const brume: TestService = {
    kind,
    database,
    router,
    machines,
    token,
    ...(await open(database.store)),
    clientOf: (value) => clientAt(brume.url, value),
    async as(wanted, restriction = {}) {
      const made = await brume.client.createToken({ body: { Name: "weak", Scopes: [...wanted], ...restriction } });
      return brume.clientOf(made.Token);
    },
    async neighbour() {
      neighbours += 1;
      const project = await brume.client.createProject({ body: { Name: `neighbour-${neighbours}` } });
      return brume.as([...scopes], { ProjectID: project.ID });
    },
    async restart(change) {
      await brume.service.close(1000);
      if (options.nameserver === undefined) await brume.nameserver.close();
      await brume.store.close();
      const store = await database.open();
      await change?.(store);
      Object.assign(brume, await open(store));
    },
    async close() {
      await brume.service.close(1000);
      await brume.nameserver.close();
      await database.close();
      rmSync(uploadFolder, { recursive: true, force: true });
    },
  };
  return brume;
}
