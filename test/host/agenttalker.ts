/** One side of the TLS test in a namespace of its own: an agent on simulated drivers, or a control plane. It obeys messages of the test. */
import { connectAgent } from "../../service/src/agent/client.ts";
import { createAgent } from "../../service/src/agent/server.ts";
import type { Identity } from "../../service/src/agent/tls.ts";
import type { Place } from "../../service/src/agent/transport.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { description, withSimulated } from "../support/agentlab.ts";
import { machine } from "../support/machinelab.ts";

/** `listen`: an agent begins. `renew`: it uses other certificates. `connect`: a control plane connects and starts a server. `observe`: it calls again. */
export type Order =
  | { readonly listen: { readonly host: string; readonly identity: Identity } }
  | { readonly renew: Identity }
  | { readonly connect: Place }
  | { readonly observe: true };
/** Value of an order, or the message of its error. */
export type Outcome = { readonly value: unknown } | { readonly error: string };

const drivers = withSimulated({});
const agent = createAgent({ drivers, description: description(), release: "test", log: silentLog });
const server = machine({ uuid: "00000000-0000-4000-8000-000000000001" });
let client: Awaited<ReturnType<typeof connectAgent>> | undefined;

async function obey(order: Order): Promise<unknown> {
  if ("listen" in order) return agent.listenTls(order.listen.host, 0, order.listen.identity);
  if ("renew" in order) return agent.renewTls(order.renew);
  if ("connect" in order) {
    client?.close();
    client = await connectAgent(order.connect, { release: "test", log: silentLog, wait: 0 });
    const starts: number[] = [];
    client.machines.onPower(({ id }) => starts.push(id));
    await client.machines.ensureDisk(server, { image: "any" });
    await client.machines.ensureStopped(server.id, "cut");
    await client.machines.ensureRunning(server);
    return starts.includes(server.id);
  }
  return (await client?.machines.observe())?.machines.length;
}

process.on("message", (order: Order) => {
  obey(order).then(
    (value) => process.send?.({ value: value ?? null }),
    (error: unknown) => process.send?.({ error: (error as Error).message }),
  );
});
process.on("disconnect", () => process.exit());
