/** Drivers behind a host agent, as tests use them: the agent listens on a Unix socket or on TLS, and a client has the driver interfaces. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentClient, type ConnectOptions, connectAgent } from "../../service/src/agent/client.ts";
import type { Drivers } from "../../service/src/agent/contract/contract.ts";
import type { Description } from "../../service/src/agent/contract/session.ts";
import { type AgentOptions, type AgentServer, createAgent } from "../../service/src/agent/server.ts";
import type { Place } from "../../service/src/agent/transport.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { createContents } from "../../service/src/drivers/content/folder.ts";
import { createUploads } from "../../service/src/drivers/content/uploads.ts";
import { createSim as createMachines } from "../../service/src/drivers/machine/sim/sim.ts";
import { createSim as createRouter } from "../../service/src/drivers/router/sim/sim.ts";
import { identities } from "./authority.ts";

export type Carrier = "unix" | "tls";

export const description = (tag = "sim"): Description => ({
  tag,
  machines: { kind: "sim", detail: "sim: no guest runs", lines: [] },
  router: { kind: "sim", detail: "sim: no packet flows", lines: [], offers: { ipsec: true, wireguard: true } },
});

const noContents = createContents({
  images: [],
  servers: "/nonexistent",
  incoming: "/nonexistent",
  checkImage: async () => {},
  now: Date.now,
});

const noUploads = createUploads({ folder: "/nonexistent", now: Date.now });

/** Simulated drivers for the interfaces that a test does not bring. */
export function withSimulated(drivers: Partial<Drivers>): Drivers {
  const sim = createMachines({ now: Date.now, images: null });
  return {
    machines: sim,
    images: sim,
    consoles: sim,
    router: createRouter(Date.now),
    contents: noContents,
    uploads: noUploads,
    ...drivers,
  };
}

export interface AgentLab {
  readonly server: AgentServer;
  readonly place: Place;
  connect(options?: Partial<ConnectOptions>): Promise<AgentClient>;
  /** Closes the clients and the agent. */
  close(): Promise<void>;
}

export async function createAgentLab(
  drivers: Partial<Drivers>,
  carrier: Carrier = "unix",
  options: Partial<AgentOptions> = {},
): Promise<AgentLab> {
  const folder = mkdtempSync(join(tmpdir(), "brume-agent-"));
  const server = createAgent({
    drivers: withSimulated(drivers),
    description: description(),
    release: "test",
    log: silentLog,
    ...options,
  });
  const socket = join(folder, "agent.sock");
  const place: Place = await (async () => {
    if (carrier === "unix") {
      await server.listenUnix(socket);
      return { socket };
    }
    const { agent, control } = identities();
    const port = await server.listenTls("127.0.0.1", 0, agent);
    return { host: "127.0.0.1", port, name: "host-1.brume", identity: control };
  })();
  const clients: AgentClient[] = [];
  return {
    server,
    place,
    async connect(more = {}) {
      const client = await connectAgent(place, { release: "test", log: silentLog, ...more });
      clients.push(client);
      return client;
    },
    async close() {
      for (const client of clients) client.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
