/** Prometheus metrics of servers: counts from the database, and values from the last run of the sampler. */
import { orphanKinds } from "@brume/api/orphan.ts";
import { Counter, Gauge, type Registry } from "prom-client";
import type { Store } from "../store/db.ts";
import { countKinds } from "./orphantable.ts";
import type { Sampler, ServerSample } from "./sampler.ts";
import { countStates, listCrashes, listFailedBackups, listServerStates } from "./table.ts";

/** Registers the metrics. */
export function addServerMetrics(registry: Registry, store: Store, sampler: Sampler): void {
  registry.registerMetric(
    new Gauge({
      name: "brume_servers",
      help: "Servers by state.",
      labelNames: ["state"],
      registers: [],
      async collect() {
        this.reset();
        for (const [state, servers] of await countStates(store.read)) this.set({ state }, servers);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: "brume_orphans",
      help: "Objects on the host that the database does not contain, by kind.",
      labelNames: ["kind"],
      registers: [],
      async collect() {
        this.reset();
        const counts = await countKinds(store.read);
        for (const kind of orphanKinds) this.set({ kind }, counts.get(kind) ?? 0);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: "brume_server_condition",
      help: "1 for each server whose VM does not respond, cannot write its disk or is paused.",
      labelNames: ["server", "condition"],
      registers: [],
      async collect() {
        this.reset();
        for (const { id, condition } of await listServerStates(store.read))
          if (condition !== "Normal") this.set({ server: id, condition }, 1);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: "brume_server_backup_failed",
      help: "1 for each server whose last daily backup failed.",
      labelNames: ["server"],
      registers: [],
      async collect() {
        this.reset();
        for (const { id } of await listFailedBackups(store.read)) this.set({ server: id }, 1);
      },
    }),
  );
  registry.registerMetric(
    new Counter({
      name: "brume_server_crashes_total",
      help: "Number of times the VM ended unexpectedly.",
      labelNames: ["server"],
      registers: [],
      async collect() {
        this.reset();
        for (const { id, crashes } of await listCrashes(store.read)) this.inc({ server: id }, crashes);
      },
    }),
  );
  const gauge = (name: string, help: string, read: (sample: ServerSample) => number | null): void =>
    registry.registerMetric(
      new Gauge({
        name,
        help,
        labelNames: ["server"],
        registers: [],
        collect() {
          this.reset();
          for (const [server, value] of valuesOf(read)) this.set({ server }, value);
        },
      }),
    );
  const counter = (name: string, help: string, read: (sample: ServerSample) => number | null): void =>
    registry.registerMetric(
      new Counter({
        name,
        help,
        labelNames: ["server"],
        registers: [],
        collect() {
          this.reset();
          for (const [server, value] of valuesOf(read)) this.inc({ server }, value);
        },
      }),
    );
  function* valuesOf(read: (sample: ServerSample) => number | null): Generator<readonly [number, number]> {
    for (const [server, sample] of sampler.last()) {
      const value = read(sample);
      if (value !== null) yield [server, value];
    }
  }

  gauge("brume_server_up", "1 if the VM runs.", ({ status }) => Number(status.power === "running"));
  gauge(
    "brume_server_memory_bytes",
    "Memory in use as the guest reports it, else memory of the VM on the host.",
    ({ status: { usage } }) => (usage === null ? null : (usage.memory ?? usage.resident) * 2 ** 20),
  );
  counter("brume_server_cpu_seconds_total", "CPU time since the VM started, in seconds of one core.", ({ counters }) =>
    counters === null ? null : counters.cpuTime / 1000,
  );
  const bytes = {
    disk_read: ["diskRead", "Bytes read from the disk since the VM started."],
    disk_written: ["diskWritten", "Bytes written to the disk since the VM started."],
    received: ["netIn", "Bytes received over all NICs."],
    sent: ["netOut", "Bytes sent over all NICs."],
  } as const;
  for (const [name, [key, help]] of Object.entries(bytes))
    counter(`brume_server_${name}_bytes_total`, help, ({ counters }) => counters?.[key] ?? null);
}
