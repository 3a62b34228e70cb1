/** Flow invariants for every flow of servers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { listImages } from "../../service/src/catalog/table.ts";
import { stepNames } from "../../service/src/engine/flow.ts";
import { list, queue, start, type Task } from "../../service/src/engine/task.ts";
import { listLinksOfServer } from "../../service/src/network/table.ts";
import type { ServerRow } from "../../service/src/server/table.ts";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { databases, type Kind, startDatabase } from "../support/databases.ts";
import type { OpenFlow } from "../support/flowfixture.ts";
import { imageRow } from "../support/rows.ts";
import { besideOthers, openServerFixture, type ServerFixture } from "../support/serverfixture.ts";
import { testFlow } from "./flow-invariants.ts";

type Begin = (tx: Tx, fixture: ServerFixture, server: ServerRow) => Promise<Task>;

interface Options {
  /** Prepares the state before the flow; default one running server. */
  readonly before?: (fixture: ServerFixture, server: ServerRow, store: Store) => Promise<unknown>;
  readonly empty?: boolean;
  readonly sizes?: boolean;
  readonly forgets?: boolean;
  /** Databases to test; flows without new SQL are tested on the faster one. */
  readonly kinds?: readonly Kind[];
  /** Runs beside the flow; default applies the networks. */
  readonly beside?: (fixture: ServerFixture, server: ServerRow, store: Store) => Promise<unknown>;
  readonly oneWay?: boolean;
}

const provedFlows = new Set<string>();
const only = <T>([one, ...more]: readonly T[]): T =>
  (more.length === 0 && one) || assert.fail("it is not the only one");

const time = Date.UTC(2026, 10, 20);

function prove(title: string, name: string, begin: Begin, options: Options = {}): void {
  const { before, beside, empty = false, sizes = false, forgets = false, oneWay = false, kinds = ["sqlite"] } = options;
  provedFlows.add(name);
  const open: OpenFlow = async (store) => {
    const fixture = await openServerFixture(store, () => time);
    const server = empty ? null : await fixture.makeServer();
    if (server !== null) {
      fixture.machines.write(server.id, "old");
      await before?.(fixture, server, store);
    }
    return {
      flow: besideOthers(fixture, name, () =>
        beside && server ? beside(fixture, server, store) : fixture.applyNetworks(),
      ),
      start: async (tx) => begin(tx, fixture, server === null ? ({} as ServerRow) : await fixture.row(server.id)),
      observe: () => fixture.observe({ sizes }),
      forgets,
      oneWay,
      close: async () => fixture.servers.close(),
    };
  };
  testFlow(title, open, kinds);
}

const switchOff = (fixture: ServerFixture, server: ServerRow) =>
  fixture.perform((tx) => fixture.servers.commands.power(tx, server, { Type: "PowerOff" }, null));
const power =
  (Type: "PowerOn" | "PowerOff" | "PowerReboot" | "ShutDownGuestOS" | "RebootGuestOS"): Begin =>
  (tx, { servers }, server) =>
    servers.commands.power(tx, server, { Type, Timeout: 1, WaitFor: Type === "PowerOn" ? "Guest" : "Power" }, null);
const make =
  (waitFor: "Power" | "Ssh"): Begin =>
  async (tx, { servers, spec }) =>
    (await servers.commands.create(tx, { project: 1, batch: null, spec: spec({ waitFor }), by: null })).task;

prove("Create", "server.Create", make("Ssh"), { empty: true, kinds: databases });
prove(
  "Copy",
  "server.Copy",
  async (tx, { servers, spec }, source) =>
    (await servers.commands.copy(tx, { source, spec: spec({ name: "web-2" }), by: null })).task,
);
prove(
  "Delete",
  "server.Delete",
  async (tx, { servers }, server) => {
    const task = await servers.commands.delete(tx, server, null);
    return task ?? assert.fail("it is being deleted already");
  },
  { forgets: true, kinds: databases },
);
prove("PowerOn", "server.PowerOn", power("PowerOn"), { before: switchOff });
prove("PowerOff", "server.PowerOff", power("PowerOff"));
prove("PowerReboot", "server.PowerReboot", power("PowerReboot"));
prove("ShutDownGuestOS", "server.ShutDownGuestOS", power("ShutDownGuestOS"));
prove("RebootGuestOS", "server.RebootGuestOS", power("RebootGuestOS"));
prove(
  "Resize with a restart",
  "server.Resize",
  (tx, { servers }, server) =>
    servers.commands.resize(
      tx,
      server,
      { input: { cpu: 4, ram: 256, hdd: 20 }, steps: ["Stop", "Cpu", "Memory", "Start", "Disk"], restart: true },
      null,
    ),
  { sizes: true },
);
prove(
  "Resize live",
  "server.Resize",
  (tx, { servers }, server) => {
    const input = { fast: true, ram: 1024, hdd: 20 };
    return servers.commands.resize(tx, server, { input, steps: ["Cpu", "Memory", "Disk"], restart: false }, null);
  },
  { sizes: true },
);
prove("Rebuild", "server.Rebuild", async (tx, { servers }, server) => {
  const plan = { image: imageRow(2), keys: null, userData: undefined };
  return (await servers.commands.rebuild(tx, server, plan, "Power", null)).task;
});
prove(
  "AddNetwork",
  "server.AddNetwork",
  (tx, { servers, networks }, server) =>
    servers.commands.addNetwork(tx, server, { network: networks[1]?.id ?? 0 }, null),
  { kinds: databases },
);
const withLink =
  (
    work: (
      tx: Tx,
      fixture: ServerFixture,
      server: ServerRow,
      link: Awaited<ReturnType<typeof listLinksOfServer>>[0],
    ) => Promise<Task>,
  ): Begin =>
  async (tx, fixture, server) => {
    const [link] = await listLinksOfServer(tx, server.id);
    return work(tx, fixture, server, link ?? assert.fail("it has no link"));
  };
prove(
  "RemoveNetwork",
  "server.RemoveNetwork",
  withLink((tx, { servers }, server, link) => servers.commands.removeNetwork(tx, server, link, null)),
  { kinds: databases },
);
prove(
  "EditNetworkBandwidth",
  "server.EditNetworkBandwidth",
  withLink((tx, { servers }, server, link) => servers.commands.bandwidth(tx, server, link, 20, null)),
);
const makeImage = (tx: Tx, { servers }: ServerFixture, server: ServerRow) =>
  servers.commands.image(tx, server, { type: "Client", name: "gold", techName: "gold", labels: {} }, null);
prove("an image", "image.make", async (tx, fixture, server) => (await makeImage(tx, fixture, server)).task);
prove(
  "the end of an image",
  "image.remove",
  async (tx, { servers }, server) => {
    const image = (await listImages(tx, 1)).find(({ server_id }) => server_id === server.id);
    await servers.commands.removeImage(tx, image ?? assert.fail("there is no image"), null);
    return only(await queue(tx, { kind: "image", id: image?.id ?? 0 }));
  },
  {
    before: (fixture, server) => fixture.perform(async (tx) => (await makeImage(tx, fixture, server)).task),
    kinds: databases,
  },
);
prove(
  "a turn",
  "server.turn",
  async (tx, fixture, server) => {
    await makeImage(tx, fixture, server);
    return only(await queue(tx, { kind: "server", id: server.id }));
  },
  {
    kinds: databases,
    // The image has its snapshot.
    beside: async (_, server, store) => {
      const [turn = assert.fail()] = await list(store.read, { kind: "server", id: server.id }, 1);
      const { task } = turn.input as { readonly task: number };
      const over = { state: "Completed", progress: 100, due_at: null, end_date: 1 } as const;
      await store.write((tx) => tx.updateTable("task").set(over).where("id", "=", task).execute());
    },
  },
);
prove(
  "an exit without a request",
  "server.settle",
  (tx, fixture, { id, project_id: project }) =>
    start(tx, fixture.flow("server.settle"), { subject: id, project, input: { died: null }, now: time }),
  { before: async (fixture, { id }) => fixture.machines.kill(id), oneWay: true, kinds: databases },
);

test("names of flows and steps are frozen", async () => {
  const database = await startDatabase("sqlite");
  const fixture = await openServerFixture(database.store, () => time);
  const guest = ["Ssh", "Guest"];
  assert.deepEqual(stepNames(fixture.servers.flows), {
    "server.Create": ["Reserve", "Disk", "Network", "Boot", ...guest],
    "server.Copy": ["Reserve", "Snapshot", "Disk", "Identity", "Network", "Boot", ...guest],
    "server.turn": ["Turn"],
    "server.PowerOn": ["Boot", ...guest],
    "server.PowerOff": ["Stop"],
    "server.PowerReboot": ["Reset", ...guest],
    "server.ShutDownGuestOS": ["Shutdown"],
    "server.RebootGuestOS": ["Shutdown", "Boot", ...guest],
    "server.AddNetwork": ["Reserve", "Plug"],
    "server.RemoveNetwork": ["Unplug", "Release"],
    "server.EditNetworkBandwidth": ["Shape"],
    "server.Resize": ["Stop", "Cpu", "Memory", "Start", "Disk"],
    "server.Rebuild": ["Stop", "Disk", "Boot", ...guest],
    "server.Delete": ["Stop", "Network", "Disk", "Release"],
    "image.make": ["Snapshot", "Write"],
    "image.remove": ["Remove"],
    "server.settle": ["Settle"],
  });
  assert.deepEqual(
    [...provedFlows].sort(),
    fixture.servers.flows.map(({ name }) => name).sort(),
    "every flow is tested",
  );
  await database.close();
});
