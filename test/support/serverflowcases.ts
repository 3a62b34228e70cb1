/** Every flow of servers with a start and its state before: for the flow invariants, and for crashes of the host agent. */
import assert from "node:assert/strict";
import { listImages } from "../../service/src/catalog/table.ts";
import { list, queue, start, type Task } from "../../service/src/engine/task.ts";
import { listLinksOfServer } from "../../service/src/network/linktable.ts";
import type { ServerRow } from "../../service/src/server/table.ts";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { databases, type Kind, sqliteFirst } from "./databases.ts";
import type { FlowFixture } from "./flowfixture.ts";
import { imageRow } from "./rows.ts";
import { besideOthers, openServerFixture, type ServerFixture, type ServerFixtureOptions } from "./serverfixture.ts";

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

/** A flow of servers. */
export interface ServerFlowCase {
  readonly title: string;
  /** Name of the flow. */
  readonly name: string;
  /** Databases to test. */
  readonly kinds: readonly Kind[];
  /** Creates a fixture with a new subject. */
  open(store: Store, options?: ServerFixtureOptions): Promise<FlowFixture>;
}

const only = <T>([one, ...more]: readonly T[]): T =>
  (more.length === 0 && one) || assert.fail("it is not the only one");

/** Time of the fixtures. */
export const time = Date.UTC(2026, 10, 20);

const cases: ServerFlowCase[] = [];
/** Every flow at least once. */
export const serverFlowCases: readonly ServerFlowCase[] = cases;

function add(title: string, name: string, begin: Begin, options: Options = {}): void {
  const { before, beside, empty = false, sizes = false, forgets = false, oneWay = false, kinds = ["sqlite"] } = options;
  cases.push({
    title,
    name,
    kinds,
    async open(store, fixtureOptions) {
      const fixture = await openServerFixture(store, () => time, fixtureOptions);
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
        close: () => fixture.close(),
      };
    },
  });
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

add("Create", "server.Create", make("Ssh"), { empty: true, kinds: sqliteFirst });
add(
  "Copy",
  "server.Copy",
  async (tx, { servers, spec }, source) =>
    (await servers.commands.copy(tx, { source, spec: spec({ name: "web-2" }), by: null })).task,
);
add(
  "Delete",
  "server.Delete",
  async (tx, { servers }, server) => {
    const task = await servers.commands.delete(tx, server, null);
    return task ?? assert.fail("it is being deleted already");
  },
  { forgets: true, kinds: databases },
);
add("PowerOn", "server.PowerOn", power("PowerOn"), { before: switchOff });
add("PowerOff", "server.PowerOff", power("PowerOff"));
add("PowerReboot", "server.PowerReboot", power("PowerReboot"));
add("ShutDownGuestOS", "server.ShutDownGuestOS", power("ShutDownGuestOS"));
add("RebootGuestOS", "server.RebootGuestOS", power("RebootGuestOS"));
add(
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
add(
  "Resize live",
  "server.Resize",
  (tx, { servers }, server) => {
    const input = { fast: true, ram: 1024, hdd: 20 };
    return servers.commands.resize(tx, server, { input, steps: ["Cpu", "Memory", "Disk"], restart: false }, null);
  },
  { sizes: true },
);
add("Rebuild", "server.Rebuild", async (tx, { servers }, server) => {
  const plan = { image: imageRow(2), keys: null, userData: undefined };
  return (await servers.commands.rebuild(tx, server, plan, "Power", null)).task;
});
add(
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
add(
  "RemoveNetwork",
  "server.RemoveNetwork",
  withLink((tx, { servers }, server, link) => servers.commands.removeNetwork(tx, server, link, null)),
  { kinds: sqliteFirst },
);
add(
  "EditNetworkBandwidth",
  "server.EditNetworkBandwidth",
  withLink((tx, { servers }, server, link) => servers.commands.bandwidth(tx, server, link, 20, null)),
);
const makeImage = (tx: Tx, { servers }: ServerFixture, server: ServerRow) =>
  servers.commands.image(tx, server, { type: "Client", name: "gold", techName: "gold", labels: {} }, null);
add("an image", "image.make", async (tx, fixture, server) => (await makeImage(tx, fixture, server)).task);
add(
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
add(
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
add(
  "an exit without a request",
  "server.settle",
  (tx, fixture, { id, project_id: project }) =>
    start(tx, fixture.flow("server.settle"), { subject: id, project, input: { died: null }, now: time }),
  { before: async (fixture, { id }) => fixture.machines.kill(id), oneWay: true, kinds: sqliteFirst },
);
