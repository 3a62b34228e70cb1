/** The server feature with a running engine, its reconcilers and a simulated clock: for invariants of servers over time. */
import assert from "node:assert/strict";
import type { ObservedStore } from "../../service/src/engine/commit.ts";
import { find, type Task } from "../../service/src/engine/task.ts";
import type { Cause } from "../../service/src/server/flow/context.ts";
import type { ServerSpec } from "../../service/src/server/model/plan.ts";
import { findAnyServer, type ServerRow } from "../../service/src/server/table.ts";
import type { Tx } from "../../service/src/store/db.ts";
import { sqliteFirst } from "./databases.ts";
import { createFixtureEngine, createTestAlarm, invariant, type TestAlarm } from "./enginefixture.ts";
import { drive } from "./flowfixture.ts";
import { openServerFixture, type ServerFixture, type ServerFixtureOptions } from "./serverfixture.ts";

export const minute = 60_000;
export const day = 24 * 60 * minute;
/** The caller that is recorded with the actions of these tests. */
export const by: Cause = { token: 1, request: "test" };

/** A `ServerFixture` with an engine, and helpers that advance its clock. */
export interface ServerEngineFixture {
  readonly fixture: ServerFixture;
  readonly alarm: TestAlarm;
  /** Runs a write transaction. */
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Advances the clock until the condition is true. */
  until(holds: () => Promise<boolean>): Promise<void>;
  /** Advances the clock until the task has ended, and returns it. */
  end(task: Task | { readonly id: number }): Promise<Task>;
  /** Advances the clock. */
  pass(milliseconds: number): Promise<void>;
  /** Creates a server and waits until it runs. */
  make(more?: Partial<ServerSpec>): Promise<ServerRow>;
  /** Returns the stored row. */
  server(id: number): Promise<ServerRow>;
  /** Returns true if the VM runs on the simulated host. */
  isOn(id: number): Promise<boolean>;
  /** Returns the ids of servers that exist on the simulated host. */
  machines(): Promise<number[]>;
}

async function withFixture(
  store: ObservedStore,
  check: (fixture: ServerEngineFixture) => Promise<void>,
  options?: ServerFixtureOptions,
): Promise<void> {
  const alarm = createTestAlarm();
  const fixture = await openServerFixture(store, alarm.now, options);
  const { servers, machines, apply } = fixture;
  const engine = createFixtureEngine(store, alarm, {
    flows: servers.flows,
    reconcilers: [...servers.reconcilers, apply],
    poll: 30_000,
    lease: 45_000,
  });
  engine.run();
  const it: ServerEngineFixture = {
    fixture,
    alarm,
    write: (work) => store.write(work),
    until: (holds) => drive(engine, alarm, holds),
    async end({ id }) {
      await it.until(async () => (await find(store.read, id))?.end !== null);
      return (await find(store.read, id)) ?? assert.fail(`task ${id} no longer exists`);
    },
    async pass(milliseconds) {
      const over = alarm.now() + milliseconds;
      alarm.at(over, () => {});
      await it.until(async () => alarm.now() >= over);
      await engine.idle();
    },
    async make(more) {
      const spec = { project: 1, batch: null, spec: fixture.spec(more), by };
      const { task, server } = await it.write((tx) => servers.commands.create(tx, spec));
      assert.equal((await it.end(task)).state, "Completed");
      return it.server(server.id);
    },
    server: async (id) => (await findAnyServer(store.read, id)) ?? assert.fail(`server ${id} does not exist`),
    isOn: async (id) => (await machines.observe()).machines.find((each) => each.id === id)?.power === "running",
    machines: async () => (await machines.observe()).machines.map(({ id }) => id),
  };
  try {
    await check(it);
  } finally {
    await engine.drain();
    servers.close();
  }
}

/**
 * Registers the test with a `ServerEngineFixture`, on SQLite. With `TEST_RUNS=all` it runs on PostgreSQL too: its SQL is that of flows and
 * end-to-end tests, which always run on both, and much simulated time takes long there.
 */
export const serverInvariant = (
  name: string,
  check: (fixture: ServerEngineFixture, store: ObservedStore) => Promise<void>,
  options?: ServerFixtureOptions,
): void => invariant(name, (store) => withFixture(store, (fixture) => check(fixture, store), options), sqliteFirst);

/** Returns the stored events of an object, in order. */
export const eventsOf = async (store: ObservedStore, resource: string, id: number) =>
  await store.read
    .selectFrom("event")
    .selectAll()
    .where("resource", "=", resource)
    .where("resource_id", "=", id)
    .orderBy("id")
    .execute();

/** Parses stored JSON; null and undefined become an empty object. */
export const readJson = (text: string | null | undefined): Readonly<Record<string, unknown>> =>
  JSON.parse(text ?? "{}") as Record<string, unknown>;
