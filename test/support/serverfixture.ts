/** Servers with an engine, their reconcilers and a clock whose hours pass at once: what laws of servers in time are played on. */
import assert from "node:assert/strict";
import type { ObservedStore } from "../../service/src/engine/commit.ts";
import { find, type Task } from "../../service/src/engine/task.ts";
import type { Cause } from "../../service/src/server/flow/context.ts";
import type { ServerSpec } from "../../service/src/server/model/plan.ts";
import { findAnyServer, type ServerRow } from "../../service/src/server/table.ts";
import type { Tx } from "../../service/src/store/db.ts";
import { createFixtureEngine, createTestAlarm, invariant, type TestAlarm } from "./enginefixture.ts";
import { drive } from "./flowfixture.ts";
import { openStage, type ServerStage, type StageOptions } from "./serverengine.ts";

export const minute = 60_000;
export const day = 24 * 60 * minute;
export const by: Cause = { token: 1, request: "asked" };

export interface ServerFixture {
  readonly stage: ServerStage;
  readonly alarm: TestAlarm;
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Lets time pass until it holds. */
  until(holds: () => Promise<boolean>): Promise<void>;
  /** Lets the task end. */
  end(task: Task | { readonly id: number }): Promise<Task>;
  /** Lets time pass. */
  pass(milliseconds: number): Promise<void>;
  make(more?: Partial<ServerSpec>): Promise<ServerRow>;
  /** Without the observed. */
  server(id: number): Promise<ServerRow>;
  isOn(id: number): Promise<boolean>;
  /** Ids of machines that are on the host. */
  machines(): Promise<number[]>;
}

async function play(
  store: ObservedStore,
  tell: (play: ServerFixture) => Promise<void>,
  options?: StageOptions,
): Promise<void> {
  const alarm = createTestAlarm();
  const stage = await openStage(store, alarm.now, options);
  const { servers, machines, apply } = stage;
  const engine = createFixtureEngine(store, alarm, {
    flows: servers.flows,
    reconcilers: [...servers.reconcilers, apply],
    poll: 30_000,
  });
  engine.run();
  const it: ServerFixture = {
    stage,
    alarm,
    write: (work) => store.write(work),
    until: (holds) => drive(engine, alarm, holds),
    async end({ id }) {
      await it.until(async () => (await find(store.read, id))?.end !== null);
      return (await find(store.read, id)) ?? assert.fail(`task ${id} is forgotten`);
    },
    async pass(milliseconds) {
      const over = alarm.now() + milliseconds;
      alarm.at(over, () => {});
      await it.until(async () => alarm.now() >= over);
      await engine.idle();
    },
    async make(more) {
      const spec = { project: 1, batch: null, spec: stage.spec(more), by };
      const { task, server } = await it.write((tx) => servers.commands.create(tx, spec));
      assert.equal((await it.end(task)).state, "Completed");
      return it.server(server.id);
    },
    server: async (id) => (await findAnyServer(store.read, id)) ?? assert.fail(`there is no server ${id}`),
    isOn: async (id) => (await machines.observe()).machines.find((each) => each.id === id)?.power === "running",
    machines: async () => (await machines.observe()).machines.map(({ id }) => id),
  };
  try {
    await tell(it);
  } finally {
    await engine.drain();
    servers.close();
  }
}

/** The same on each database. */
export const ask = (
  name: string,
  prove: (play: ServerFixture, store: ObservedStore) => Promise<void>,
  options?: StageOptions,
): void => invariant(name, (store) => play(store, (it) => prove(it, store), options));

/** What was told of something, in order. */
export const eventsOf = async (store: ObservedStore, resource: string, id: number) =>
  await store.read
    .selectFrom("event")
    .selectAll()
    .where("resource", "=", resource)
    .where("resource_id", "=", id)
    .orderBy("id")
    .execute();

/** Stored JSON of an object; of nothing, nothing. */
export const readJson = (text: string | null | undefined): Readonly<Record<string, unknown>> =>
  JSON.parse(text ?? "{}") as Record<string, unknown>;
