/** What the stories of servers share: servers that run, actions that have ended, and what was told since somebody last asked. */
import assert from "node:assert/strict";
import type { Action, ActionInput } from "@brume/api/action.ts";
import type { Event } from "@brume/api/event.ts";
import type { Server } from "@brume/api/server.ts";
import type { OperatorImage } from "../../service/src/drivers/machine/interface.ts";
import type { Stage } from "./harness.ts";
import type { MovableClock } from "./networkfixture.ts";
import { tiny } from "./testservice.ts";

/** Seconds. */
const patience = 30;

export interface ServerScene {
  /** One that is `Active`, with a name that no other has. */
  server(more?: object): Promise<Server>;
  read(id: number, until?: (server: Server) => boolean): Promise<Server>;
  /** The action when it has ended. */
  act(id: number, order: ActionInput): Promise<Action>;
  /** The action as it is when it has just been ordered. */
  order(id: number, order: ActionInput): Promise<Action>;
  ended(action: Action): Promise<Action>;
  /** The newest first. */
  actions(id: number): Promise<Action[]>;
  remove(id: number): Promise<void>;
  /** Events of the project after the last call of this, or from its first. */
  response(): Promise<Event[]>;
}

export function createServerScene(stage: Stage): ServerScene {
  let names = 0;
  let last = 0;
  const scene: ServerScene = {
    async server(more = {}) {
      names += 1;
      const made = await stage.client.createServer({ body: { Name: `server ${names}`, ...more } }, { wait: patience });
      assert.equal(made.State, "Active", JSON.stringify(made));
      return made;
    },
    read: (id, until = () => true) =>
      stage.client.waitFor("readServer", { path: { id } }, { until, timeout: patience * 1000 }),
    act: (id, body) => stage.client.startAction({ path: { id }, body }, { wait: patience }),
    order: (id, body) => stage.client.startAction({ path: { id }, body }),
    ended: ({ ServerID: id, ID: actionID }) =>
      stage.client.waitFor(
        "readAction",
        { path: { id, actionID } },
        { until: ({ EndDate }) => EndDate !== null, timeout: patience * 1000 },
      ),
    actions: (id) => stage.client.listActions({ path: { id } }),
    remove: (id) => stage.client.deleteServer({ path: { id } }, { wait: patience }),
    async response() {
      const events = await stage.client.listEvents({ query: { after: last, limit: 1000 } });
      last = events.at(-1)?.ID ?? last;
      return events;
    },
  };
  return scene;
}

export const stepsOf = ({ Steps }: Action): string[] => Steps.map(({ Name, State }) => `${Name} ${State}`);
export const typesOf = (events: readonly Event[]): string[] => events.map(({ Type }) => Type);

/** A system that takes no keys, and one that has to be fetched first. */
export const windows: OperatorImage = {
  ...tiny,
  name: "windows",
  title: "Windows",
  family: "Windows",
  folder: "windows",
  hdd: 4,
  minRam: 1000,
};
export const debian: OperatorImage = {
  ...tiny,
  name: "debian-12",
  title: "Debian 12",
  os: "Debian",
  folder: null,
  hdd: 2,
  minRam: 256,
};

/** Lets time pass, and the service see that it has: any wish wakes it, and it finds what the clock has made due. */
export async function pass(stage: Stage, clock: MovableClock, seconds: number): Promise<void> {
  clock.pass(seconds);
  const { ID } = await stage.client.createNetwork({ body: { Name: "bell" } });
  await stage.client.deleteNetwork({ path: { id: ID } });
}

/** What there is of the server anywhere but in the answers. */
export async function tracesOf({ world }: Stage, id: number): Promise<string[]> {
  const { machines } = await world.machines.observe();
  const links = await world.store.read.selectFrom("link").select("id").where("server_id", "=", id).execute();
  const tasks = await world.store.read
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
