/**
 * Health of the service for `/readyz`: checks database, machine driver, data disk and name server, and combines the results. The
 * composition root repeats the check; requests read the last result.
 */

import { sql } from "kysely";
import { Gauge, type Registry } from "prom-client";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { reasonOf } from "./base/reason.ts";
import { within } from "./base/within.ts";
import type { DnsMetrics } from "./dns/metrics.ts";
import type { ZonePublisher } from "./dns/publisher.ts";
import { createDiskEvents } from "./http/diskevents.ts";
import { createDiskWatch, type DiskSettings, type DiskState, describeDisk } from "./http/diskspace.ts";
import type { Readiness } from "./http/servicehandlers.ts";
import type { NetworkStatusCache } from "./network/statuscache.ts";
import type { MachineStatusCache } from "./server/machinestatus.ts";
import { countOrphans } from "./server/orphantable.ts";
import type { Store } from "./store/db.ts";

/** Checks the parts of the service. */
export interface Health {
  /** Checks all parts, counts orphans, and reports a low disk as an event. Never rejects. */
  check(): Promise<void>;
  /** Returns the results of the last check. The router has a status of its own, which the drift check refreshes. */
  readiness(state: ServiceState): Readiness;
}

/** Phase of the process; only a running service can be ready. */
export type ServiceState = "starting" | "running" | "stopping";

/** Returns the state of the API's certificate at a time, and when it expires; times in ms since 1970. */
export type CertificateCheck = (now: number) => {
  readonly Ok: boolean;
  readonly Detail: string;
  readonly expires: number;
};

/** What `createHealth` checks, and texts for the details. */
export interface HealthOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly machines: Pick<MachineStatusCache, "observe" | "observeServers">;
  readonly networks: Pick<NetworkStatusCache, "last">;
  readonly zones: Pick<ZonePublisher, "loadProblem">;
  readonly metrics: DnsMetrics;
  /** Without it the disk is not checked. */
  readonly disk: DiskSettings | undefined;
  /** Without it there is no TLS. */
  readonly certificate: CertificateCheck | undefined;
  /** Descriptions of the drivers, shown while they work. */
  readonly details: { readonly machine: string; readonly router: string };
}

/** Milliseconds after which a database that does not respond is reported as failing. */
const databaseTimeout = 1000;

/** Creates the checks. Before the first one, every part counts as working. */
export function createHealth(options: HealthOptions): Health {
  const { store, clock, log, machines, networks, zones, metrics, details } = options;
  const diskWatch = createDiskWatch({ ...options.disk, log, registry: metrics.registry });
  const diskEvents = createDiskEvents(store);
  const { certificate } = options;
  if (certificate !== undefined) addCertificateMetric(metrics.registry, () => certificate(clock.now()).expires);
  let isDatabaseUp = true;
  let disk: DiskState | null = null;
  let machineState = { ready: true, detail: "not checked yet" };
  let orphans = 0;

  async function checkDatabase(): Promise<boolean> {
    const query = sql`select 1`.execute(store.read).then(
      () => true,
      () => false,
    );
    return (await within(query, databaseTimeout, false)) && store.unavailable() === null;
  }

  return {
    async check() {
      isDatabaseUp = await checkDatabase();
      // The engine runs no reconciler while nothing can be stored, so the VMs are observed here.
      const machine = (store.blocked() === null ? machines.observeServers([]) : machines.observe()).then(
        ({ ready, detail }) => ({ ready, detail }),
        (error: unknown) => ({ ready: false, detail: reasonOf(error) }),
      );
      disk = await diskWatch.measure();
      // A failed write is tried again at the next check.
      await diskEvents.report(disk, clock.now()).catch(() => {});
      await metrics.refresh();
      machineState = await machine;
      orphans = await countOrphans(store.read).catch(() => orphans);
    },
    readiness(state) {
      const { ready, detail, address } = metrics.last();
      const router = networks.last();
      const zoneError = zones.loadProblem();
      const checks = [
        {
          Name: "database",
          Ok: isDatabaseUp,
          Detail: isDatabaseUp ? store.kind : (store.unavailable() ?? `${store.kind} does not respond`),
        },
        {
          Name: "machine",
          Ok: machineState.ready,
          Detail: `${machineState.ready ? details.machine : machineState.detail}${describeOrphans(orphans)}`,
        },
        {
          Name: "disk",
          Ok: store.blocked() === null && disk?.isLow !== true,
          Detail: store.blocked() ?? describeDisk(disk),
        },
        { Name: "router", Ok: router.ready, Detail: router.ready ? details.router : router.detail },
        { Name: "nameserver", Ok: ready && zoneError === null, Detail: ready ? (zoneError ?? address) : detail },
      ];
      // With a full disk, reads and the name server still work. Whether a certificate is sufficient is decided by the clients.
      const isWell = checks.every(({ Name, Ok }) => Ok || Name === "disk");
      const status = state === "running" ? (isWell ? "ready" : "failing") : state;
      if (certificate === undefined) return { Status: status, Checks: checks };
      const { Ok, Detail } = certificate(clock.now());
      return { Status: status, Checks: [...checks, { Name: "certificate", Ok, Detail }] };
    },
  };
}

function addCertificateMetric(registry: Registry, expires: () => number): void {
  const gauge: Gauge = new Gauge({
    name: "brume_certificate_expiry_timestamp_seconds",
    help: "When the certificate of the API expires, in seconds since 1970.",
    registers: [],
    collect: () => gauge.set(Math.floor(expires() / 1000)),
  });
  registry.registerMetric(gauge);
}

const describeOrphans = (count: number): string =>
  count === 0 ? "" : `; ${count} on the host that the database does not contain: GET /orphan`;
