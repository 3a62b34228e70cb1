/** Measures how long an installation needs to create many objects from nothing through the API, per object, compared with a twentieth of them. */
import type { Client } from "@brume/api/client.ts";
import { startBrume } from "./brume.ts";
import { processorTime } from "./process.ts";
import { settings } from "./sizefill.ts";

/** Milliseconds of processor time for an object: among few, and among many. */
export interface Growth {
  readonly few: number;
  readonly many: number;
}

/** Servers of one group, and networks that are requested together. */
const groupSize = 100;
const together = 8;
const part = 20;

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const quotas = { Servers: 1_000_000, CPU: 1_000_000, RAM: 1_000_000_000, HDD: 1_000_000, PublicNetworks: 1_000_000 };

async function createNetwork(client: Client, Name: string): Promise<void> {
  const { State, Error: cause } = await client.createPublicNetwork({ body: { Name } }, { wait: 60 });
  if (State !== "Active") throw new Error(`a network is ${State}: ${JSON.stringify(cause)}`);
}

/** Creates an installation with so many objects, waits until all are Active, and returns its processor time for each. `url`: PostgreSQL. */
async function costOf(kind: "servers" | "networks", count: number, url: string | null): Promise<number> {
  const brume = await startBrume(undefined, { ...settings, ...(url !== null && { BRUME_DATABASE: url }) });
  const { client, program } = brume;
  try {
    await client.updateProject({ path: { id: 1 }, body: { Quotas: quotas } });
    const before = processorTime(program.child.pid);
    if (kind === "servers") {
      for (let made = 0; made < count; made += groupSize) {
        const body = { Name: `s${made}-{n}`, Count: Math.min(groupSize, count - made), CPU: 1, RAM: 128, HDD: 1 };
        await client.createBatch({ body });
      }
      while ((await client.listServers({ query: { state: "New", limit: 1 } })).length > 0) await wait(200);
      const failed = await client.listServers({ query: { state: "Failed", limit: 1 } });
      if (failed.length > 0) throw new Error(`a server could not be created: ${JSON.stringify(failed[0]?.Error)}`);
    } else
      for (let made = 0; made < count; made += together)
        await Promise.all(
          Array.from({ length: Math.min(together, count - made) }, (_, index) =>
            createNetwork(client, `n${made + index}`),
          ),
        );
    return (processorTime(program.child.pid) - before) / count;
  } finally {
    await brume.stop();
    brume.remove();
  }
}

/** Measures `count` objects and a twentieth of them. `open` returns the URL of an empty PostgreSQL; null: SQLite. */
export async function measureGrowth(
  kind: "servers" | "networks",
  count: number,
  open: () => Promise<string | null>,
): Promise<Growth> {
  const few = await costOf(kind, Math.max(1, Math.round(count / part)), await open());
  return { few, many: await costOf(kind, count, await open()) };
}
