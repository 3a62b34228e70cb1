/** `brume top`: the load of all running servers and the free capacity, refreshed. */
import type { Client } from "@brume/api/client.ts";
import { rate } from "../print/metrics.ts";
import { align } from "../print/table.ts";
import { isOn, numberFlag, type Run } from "../session.ts";
import { pause } from "../time.ts";

const last = (series: readonly (number | null)[]) => series.findLast((value) => value !== null) ?? null;

/** Reads the newest metrics of all servers, and returns the lines of the display. */
async function read(client: Client, signal: AbortSignal, now: number): Promise<string[]> {
  const [servers, locations] = await Promise.all([
    client.listServers({ query: { limit: 200 } }, { signal }),
    client.listLocations({}, { signal }),
  ]);
  const query = { from: new Date(now - 60_000).toISOString(), step: 10 };
  const rows = await Promise.all(
    servers.map(async ({ ID, Name, State, IsPowerOn, CPU, RAM, IP }) => {
      const metrics = IsPowerOn
        ? await client.readServerMetrics({ path: { id: ID }, query }, { signal }).catch(() => null)
        : null;
      const series = metrics?.Series;
      const cpu = series ? last(series.Cpu) : null;
      const memory = series ? last(series.MemoryUsed) : null;
      return {
        cpu: cpu ?? -1,
        cells: [
          Name,
          IsPowerOn ? State : `${State}, off`,
          cpu === null ? "-" : `${cpu.toFixed(0)}% of ${CPU}00%`,
          memory === null ? `- of ${RAM} MB` : `${memory.toFixed(0)} of ${RAM} MB`,
          ...(["DiskRead", "DiskWrite", "NetIn", "NetOut"] as const).map((name) =>
            rate(series ? last(series[name]) : null),
          ),
          IP || "-",
        ],
      };
    }),
  );
  const free = locations.map(
    ({ TechTitle, Capacity: { FreeCPU, CPU, FreeRAM, RAM, FreeHDD, HDD } }) =>
      `${TechTitle}: free ${FreeCPU} of ${CPU} CPUs, ${FreeRAM} of ${RAM} MB, ${FreeHDD} of ${HDD} GB`,
  );
  const sorted = rows.toSorted((a, b) => b.cpu - a.cpu).map(({ cells }) => cells);
  return [...free, "", ...align([["SERVER", "STATE", "CPU", "MEMORY", "READ", "WRITE", "IN", "OUT", "IP"], ...sorted])];
}

export const run: Run = async (session) => {
  const { host, print } = session;
  const client = await session.client();
  const interval = ((await numberFlag(session, "interval")) ?? 2) * 1000;
  if (isOn(session, "once") || !host.out.isTerminal) return print.lines(await read(client, host.signal, host.now()));
  while (!host.signal.aborted) {
    const lines = await read(client, host.signal, host.now());
    const shown = lines.slice(0, Math.max(3, host.out.rows - 1)).map((line) => line.slice(0, host.out.columns || 200));
    host.out.write(`\u001B[H\u001B[2J${shown.join("\n")}\n`);
    await pause(interval, host.signal);
  }
};
