/**
 * How many round trips to PostgreSQL a request costs. Each waits for the network, and the next commit waits for all of them. If a
 * change adds a round trip, this test fails. Send the statement together with others, without awaiting its result (`send`, `reserveEarly`,
 * `Promise.all`).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { onPostgres } from "../support/harness.ts";
import { listSent, type Sent } from "../support/roundtrips.ts";

/** Tries of a request: work in the background may share a commit with one of them. */
const tries = 5;

onPostgres("round trips of a request", (harness) => {
  let count = 0;
  const post = async (path: string, body: object): Promise<void> => {
    const { status, text } = await harness.request(`POST ${path}`, { Name: `new-${++count}`, ...body });
    assert.equal(status, 200, text);
  };
  /** Whether no task runs or is due. */
  const isIdle = async (): Promise<boolean> => {
    const tasks = harness.brume.store.read.selectFrom("task").select("id");
    const busy = tasks.where((row) => row.or([row("lease", "is not", null), row("due_at", "<=", Date.now())]));
    return (await busy.execute()).length === 0;
  };
  const cases = [
    {
      name: "new server",
      table: "server",
      trips: 6,
      prepare: async () => ({}),
      act: () => post("/server", { CPU: 1, RAM: 128, HDD: 1 }),
    },
    {
      name: "new server in a network of its project",
      table: "server",
      trips: 8,
      prepare: async () => ({
        NetworkID: (await harness.client.createPublicNetwork({ body: { Name: "home" } })).Id,
      }),
      act: (body: object) => post("/server", { CPU: 1, RAM: 128, HDD: 1, ...body }),
    },
    {
      name: "new domain",
      table: "domain",
      trips: 2,
      prepare: async () => ({}),
      act: () => post("/dns", { Name: `new-${++count}.example` }),
    },
    {
      name: "new domain with an address",
      table: "domain",
      trips: 3,
      prepare: async () => ({}),
      act: () => post("/dns", { Name: `new-${++count}.example`, Ip: "192.0.2.1" }),
    },
    {
      name: "new record",
      table: "record",
      trips: 2,
      prepare: async () => ({ DomainId: (await harness.domain()).ID }),
      act: (body: object) => post("/dns/recorda", { IP: "192.0.2.1", ...body }),
    },
  ] as const;

  for (const { name, table, trips, prepare, act } of cases)
    test(`${name}: ${trips}`, async () => {
      const body = await prepare();
      // The first request may read what the service then keeps.
      await act(body);
      const all: Sent[] = [];
      const exceeds = () => all.every((sent) => sent.trips > trips);
      for (let tried = 0; tried < tries && exceeds(); tried++) {
        while (!(await isIdle())) await sleep(20);
        all.push(...(await listSent(`insert into "${table}"`, () => act(body))));
      }
      const [least] = all.sort((one, other) => one.trips - other.trips);
      assert.ok(!exceeds(), `${least?.trips} round trips, which begin with ${least?.starts.join("\n")}`);
    });
});
