/** Background work for servers and images reads what it needs, and not what all others have. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { insertImage, listFailedBackupsOf } from "../../service/src/catalog/table.ts";
import { addLink, listLinksOfServer } from "../../service/src/network/linktable.ts";
import { listOrphans } from "../../service/src/server/orphantable.ts";
import { updateServer } from "../../service/src/server/table.ts";
import type { Store } from "../../service/src/store/db.ts";
import { startDatabase } from "../support/databases.ts";
import { explainQueries } from "../support/queryplan.ts";
import { countRows } from "../support/rowcount.ts";
import { imageRow } from "../support/rows.ts";
import {
  listBackups,
  openServerFixture,
  type ServerFixture,
  type ServerFixtureOptions,
} from "../support/serverfixture.ts";

const time = Date.UTC(2026, 10, 20);
const day = 86_400_000;

async function withServers(
  check: (fixture: ServerFixture, store: Store) => Promise<void>,
  options?: ServerFixtureOptions,
): Promise<void> {
  const database = await startDatabase("sqlite");
  try {
    const fixture = await openServerFixture(database.store, () => time, options);
    try {
      await check(fixture, database.store);
    } finally {
      await fixture.close();
    }
  } finally {
    await database.close();
  }
}

/** Runs a reconciler once, without an engine. */
async function run({ servers }: ServerFixture, name: string): Promise<void> {
  const reconciler = servers.reconcilers.find((each) => each.name === name) ?? assert.fail(`there is no ${name}`);
  await reconciler.run({ subject: 0, attempt: 1, signal: new AbortController().signal });
}

test("a due backup, and the removal of an old one, do not read the backups of other servers", async () => {
  await withServers(async (fixture, store) => {
    const others = 60;
    const add = (server: number, more: object = {}) =>
      store.write(async (tx) => {
        const { id: _, ...image } = imageRow(10, { type: "Backup", server_id: server, created: time, ...more });
        return insertImage(tx, image);
      });
    for (let index = 0; index < others; index++) await add(1000 + index);
    const due = [await fixture.makeServer(), await fixture.makeServer({ name: "web-2" })];
    for (const { id } of due) {
      await store.write((tx) => updateServer(tx, id, { is_backup_active: 1 }));
      await add(id, { state: "Failed" });
    }
    const old = [await add(1000, { created: time - 29 * day }), await add(1001, { created: time - 30 * day })];

    const plans = await explainQueries(store.read, async (db) => void (await listFailedBackupsOf(db, 1000)));
    assert.deepEqual(plans, [["SEARCH image USING INDEX image_server (server_id=?)"]]);
    const read = await countRows('from "image"', () => run(fixture, "server.backup"));
    const left = await listBackups(store.read);
    assert.deepEqual(
      left.filter(({ server_id }) => due.some(({ id }) => id === server_id)).map(({ state }) => state),
      ["New", "New"],
    );
    assert.ok(!left.some(({ id }) => old.some((one) => one.id === id)));
    // All are read once, to find old ones.
    assert.ok(read < others * 1.5, `${read} rows`);
  });
});

test("the search for orphans reads the details of each unknown image once, and of no known one", async () => {
  const read: string[] = [];
  const carry: ServerFixtureOptions["carry"] = async ({ machines, router }) => ({
    machines,
    consoles: machines,
    router,
    close: async () => {},
    images: {
      ...machines,
      readImages(names) {
        read.push(...names);
        return machines.readImages(names);
      },
    },
  });
  await withServers(
    async (fixture, store) => {
      const { machines } = fixture;
      const { id } = await fixture.makeServer();
      const add = async (name: string): Promise<void> => {
        await machines.ensureSnapshot(id, name);
        await machines.ensureImage(id, name, { title: name });
      };
      for (let image = 20; image < 40; image++) {
        await add(`own-${image}`);
        await store.write((tx) => insertImage(tx, imageRow(image)));
      }
      await add("own-4000");
      await add("a-stock-image");
      await machines.ensureSnapshot(id, "own-4001");
      const search = async (): Promise<unknown> => {
        read.length = 0;
        await run(fixture, "server.orphan");
        const orphans = await listOrphans(store.read);
        return [[...read].sort(), orphans.map(({ kind, name, title, hdd, ram }) => [kind, name, title, hdd, ram])];
      };
      const image = ["Image", "own-4000", "own-4000", 10, 128];
      const snapshot = ["Snapshot", "own-4001", "own-4001", 10, 128];
      const both = ["own-4000", "own-4001"];
      assert.deepEqual(await search(), [both, [image, snapshot]]);
      assert.deepEqual(await search(), [[], [image, snapshot]]);
      await machines.ensureImage(id, "own-4001", { title: "own-4001" });
      assert.deepEqual(await search(), [["own-4001"], [image, ["Image", ...snapshot.slice(1)]]]);
      await machines.removeImage("own-4000");
      await store.write((tx) => tx.deleteFrom("image").where("id", "=", 20).execute());
      assert.deepEqual(await search(), [
        ["own-20"],
        [
          ["Image", ...snapshot.slice(1)],
          ["Image", "own-20", "own-20", 10, 128],
        ],
      ]);
    },
    { carry },
  );
});

test("the search for orphans checks a page of links in each run, and removes those without a server", async () => {
  await withServers(async (fixture, store) => {
    const link = (id: number, server: number) =>
      ({
        id,
        network_id: fixture.networks[0]?.id ?? 0,
        server_id: server,
        host_name: "x",
        ip: `0a3f${(0x1000 + id).toString(16)}`,
        bandwidth: 1,
        state: "Active",
        created: 0,
      }) as const;
    const { id } = await fixture.makeServer();
    const last = 1200;
    await store.write(async (tx) => {
      for (let index = 100; index < last; index++) addLink(tx, link(index, id));
      addLink(tx, link(last, 4711));
    });
    const stray = () => listLinksOfServer(store.read, 4711);
    for (const left of [1, 1, 0]) {
      const read = await countRows('from "link"', () => run(fixture, "server.orphan"));
      assert.ok(read <= 510, `${read} rows`);
      assert.equal((await stray()).length, left);
    }
    await store.write(async (tx) => addLink(tx, link(last + 1, 4711)));
    for (const left of [1, 1, 0]) {
      await run(fixture, "server.orphan");
      assert.equal((await stray()).length, left);
    }
  });
});
