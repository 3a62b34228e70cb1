/** Fixture of the server tests: creates servers through the API, runs actions to their end and reads new events. */
import assert from "node:assert/strict";
import type { Action, ActionInput } from "@brume/api/action.ts";
import type { Event } from "@brume/api/event.ts";
import type { Server } from "@brume/api/server.ts";
import type { OperatorImage } from "../../service/src/drivers/machine/interface.ts";
import type { Harness } from "./harness.ts";
import type { MovableClock } from "./networkfixture.ts";
import { tiny } from "./testservice.ts";

/** Longest wait, in seconds. */
const timeout = 120;

export interface ServerApiFixture {
  /** Creates a server with a unique name and waits until it is `Active`. */
  server(more?: object): Promise<Server>;
  /** Reads the server until the condition is true. */
  read(id: number, until?: (server: Server) => boolean): Promise<Server>;
  /** Starts an action and resolves when it has ended. */
  act(id: number, order: ActionInput): Promise<Action>;
  /** Starts an action and returns it without waiting. */
  order(id: number, order: ActionInput): Promise<Action>;
  /** Waits until the action has ended. */
  ended(action: Action): Promise<Action>;
  /** Lists the actions of a server, newest first. */
  actions(id: number): Promise<Action[]>;
  /** Deletes the server and waits for the end. */
  remove(id: number): Promise<void>;
  /** Waits until the server, which is being deleted, does not exist. */
  gone(id: number): Promise<void>;
  /** Returns the events of the project since the last call; the first call returns all. */
  newEvents(): Promise<Event[]>;
}

export function createServerApiFixture(harness: Harness): ServerApiFixture {
  let names = 0;
  let last = 0;
  const fixture: ServerApiFixture = {
    async server(more = {}) {
      names += 1;
      const made = await harness.client.createServer({ body: { Name: `server ${names}`, ...more } }, { wait: timeout });
      assert.equal(made.State, "Active", JSON.stringify(made));
      return made;
    },
    read: (id, until = () => true) =>
      harness.client.waitFor("readServer", { path: { id } }, { until, timeout: timeout * 1000 }),
    act: (id, body) => harness.client.startAction({ path: { id }, body }, { wait: timeout }),
    order: (id, body) => harness.client.startAction({ path: { id }, body }),
    ended: ({ ServerID: id, ID: actionID }) =>
      harness.client.waitFor(
        "readAction",
        { path: { id, actionID } },
        { until: ({ EndDate }) => EndDate !== null, timeout: timeout * 1000 },
      ),
    actions: (id) => harness.client.listActions({ path: { id } }),
    remove: (id) => harness.client.deleteServer({ path: { id } }, { wait: timeout }),
    async gone(id) {
      const until = (servers: readonly Server[]): boolean => servers.every(({ ID }) => ID !== id);
      await harness.client.waitFor("listServers", {}, { until, timeout: timeout * 1000 });
    },
    async newEvents() {
      const events = await harness.client.listEvents({ query: { after: last, limit: 1000 } });
      last = events.at(-1)?.ID ?? last;
      return events;
    },
  };
  return fixture;
}

/** Returns `NAME STATE` of each step. */
export const stepsOf = ({ Steps }: Action): string[] => Steps.map(({ Name, State }) => `${Name} ${State}`);
export const typesOf = (events: readonly Event[]): string[] => events.map(({ Type }) => Type);

/** An image whose guest does not support SSH keys. */
export const windows: OperatorImage = {
  ...tiny,
  name: "windows",
  title: "Windows",
  family: "Windows",
  folder: "windows",
  hdd: 4,
  minRam: 1000,
};
/** An image that must be downloaded before use. */
export const debian: OperatorImage = {
  ...tiny,
  name: "debian-12",
  title: "Debian 12",
  os: "Debian",
  folder: null,
  hdd: 2,
  minRam: 256,
};

/** Advances the clock. Creating a network wakes the service, which then runs what is due. */
export async function pass(harness: Harness, clock: MovableClock, seconds: number): Promise<void> {
  clock.pass(seconds);
  const { ID } = await harness.client.createNetwork({ body: { Name: "wake" } });
  await harness.client.deleteNetwork({ path: { id: ID } });
}

/** Returns what is left of a server on the simulated host and in the tables of links and tasks. */
export async function tracesOf({ brume }: Harness, id: number): Promise<string[]> {
  const { machines } = await brume.machines.observe();
  const links = await brume.store.read.selectFrom("link").select("id").where("server_id", "=", id).execute();
  const tasks = await brume.store.read
    .selectFrom("task")
    .select("name")
    .where("subject", "=", "server")
    .where("subject_id", "=", id)
    .execute();
  return [
    ...machines.filter((machine) => machine.id === id).map(() => "a machine"),
    ...links.map((link) => `link ${link.id}`),
    ...tasks.map(({ name }) => `task ${name}`),
  ];
}
