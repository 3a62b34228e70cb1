/** Prometheus metrics of servers: counts from the database, and values from the last run of the sampler. */
import { orphanKinds } from "@brume/api/orphan.ts";
import { Counter, Gauge, type Registry } from "prom-client";
import { forEachInTurns } from "../base/turn.ts";
import type { Store } from "../store/db.ts";
import type { MachineStatusCache } from "./machinestatus.ts";
import { countKinds } from "./orphantable.ts";
import type { Sampler, ServerSample } from "./sampler.ts";
import { countStates, listNotable } from "./table.ts";

/** Registers the metrics. */
export function addServerMetrics(
  registry: Registry,
  store: Store,
  sampler: Sampler,
  machines: Pick<MachineStatusCache, "troubled">,
): void {
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
        const servers = store.blocked() === null ? await listNotable.all(store.read, {}) : machines.troubled();
        for (const { id, condition } of servers) if (condition !== "Normal") this.set({ server: id, condition }, 1);
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
        for (const { id, backup_failed: date } of await listNotable.all(store.read, {}))
          if (date !== null) this.set({ server: id }, 1);
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
        for (const { id, crashes } of await listNotable.all(store.read, {}))
          if (crashes > 0) this.inc({ server: id }, crashes);
      },
    }),
  );
  /** Adds each metric over all servers. */
  async function sum(): Promise<ReadonlyMap<string, number>> {
    const all = Object.entries(series).map(([name, { read }]) => ({ name, read, value: 0 }));
    await forEachInTurns(sampler.last().values(), (sample) => {
      for (const metric of all) metric.value += metric.read(sample) ?? 0;
    });
    return new Map(all.map(({ name, value }) => [name, value]));
  }
  const total = new Gauge({
    name: "brume_servers_total",
    help: "Sums over all servers of the metrics that GET /metrics?servers=true returns for each.",
    labelNames: ["metric"],
    registers: [],
    async collect() {
      for (const [metric, value] of await sum()) this.set({ metric }, value);
    },
  });
  registry.registerMetric(total);
}

interface Series {
  readonly type: "gauge" | "counter";
  readonly help: string;
  /** Null: not measured. */
  readonly read: (sample: ServerSample) => number | null;
}

const bytesOf = (key: "diskRead" | "diskWritten" | "netIn" | "netOut", help: string): Series => ({
  type: "counter",
  help,
  read: (sample) => (sample.memory === null ? null : sample[key]),
});

/** Metrics of each server, by name. */
const series = {
  brume_server_up: {
    type: "gauge",
    help: "1 if the VM runs.",
    read: ({ isUp }) => Number(isUp),
  },
  brume_server_memory_bytes: {
    type: "gauge",
    help: "Memory in use as the guest reports it, else memory of the VM on the host.",
    read: ({ memory }) => (memory === null ? null : memory * 2 ** 20),
  },
  brume_server_cpu_seconds_total: {
    type: "counter",
    help: "CPU time since the VM started, in seconds of one core.",
    read: ({ memory, cpuTime }) => (memory === null ? null : cpuTime / 1000),
  },
  brume_server_disk_read_bytes_total: bytesOf("diskRead", "Bytes read from the disk since the VM started."),
  brume_server_disk_written_bytes_total: bytesOf("diskWritten", "Bytes written to the disk since the VM started."),
  brume_server_received_bytes_total: bytesOf("netIn", "Bytes received over all NICs."),
  brume_server_sent_bytes_total: bytesOf("netOut", "Bytes sent over all NICs."),
} as const satisfies Readonly<Record<string, Series>>;

/** Lines that are joined to one piece. */
const joined = 200;

/** Yields the metrics of each server in the Prometheus format, from the last sample. */
export async function* printServerMetrics(sampler: Pick<Sampler, "last">): AsyncGenerator<string> {
  for (const [name, { type, help, read }] of Object.entries(series) as [string, Series][]) {
    let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    let lines = 0;
    for (const [server, sample] of sampler.last()) {
      const value = read(sample);
      if (value === null) continue;
      text += `${name}{server="${server}"} ${value}\n`;
      if (++lines % joined !== 0) continue;
      yield text;
      text = "";
    }
    yield text;
  }
}
