/** An operator image is downloaded for its first server, over HTTP into a real image folder, and the action shows the progress. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Action } from "@brume/api/action.ts";
import type { Image } from "@brume/api/catalog.ts";
import { updateImage } from "../../service/src/catalog/table.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { createImageStore, type ImageStore } from "../../service/src/drivers/machine/image/store.ts";
import { createGate } from "../support/enginefixture.ts";
import { onSqlite } from "../support/harness.ts";
import { tiny } from "../support/testservice.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-fetch-"));
after(() => rmSync(folder, { recursive: true }));
const distro = { ...tiny, name: "distro", title: "Distro", os: "Debian", folder: null, guest: "cloud-init" as const };
let store: ImageStore;
let gate: ReturnType<typeof createGate>;

const [raw, disk] = [join(folder, "raw"), join(folder, "distro.img")];
/** Bytes sent at once. The rest is sent slowly, and completely when the test opens the gate. */
const start = 200_000;
const drop = 1000;
const dropTime = 20;

async function send(response: ServerResponse, bytes: Buffer): Promise<void> {
  response.writeHead(200, { "content-length": bytes.length });
  response.write(bytes.subarray(0, start));
  let sent = start;
  const timer = setInterval(() => {
    if (sent >= bytes.length / 2) return;
    response.write(bytes.subarray(sent, sent + drop));
    sent += drop;
  }, dropTime);
  const closed = once(response, "close");
  await Promise.race([gate.pass(), closed]);
  clearInterval(timer);
  response.end(bytes.subarray(sent));
}

const server = createServer((request, response) => {
  const bytes = readFileSync(disk);
  const sum = createHash("sha256").update(bytes).digest("hex");
  if (request.url === "/SUMS") response.end(`${sum}  distro.img\n`);
  else void send(response, bytes);
});

before(async () => {
  writeFileSync(raw, Buffer.alloc(3_000_000, "distro"));
  await exec.run(["qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", raw, disk]);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => server.close());

onSqlite(
  "an image that is downloaded",
  (harness) => {
    before(() => {
      const images = join(folder, harness.kind);
      const imports = join(images, "import");
      mkdirSync(imports, { recursive: true });
      gate = createGate();
      const { port } = server.address() as AddressInfo;
      const entry = {
        name: "distro",
        title: "Distro",
        family: "Linux" as const,
        os: "Debian",
        minRam: 128,
        hdd: 1,
        url: `http://127.0.0.1:${port}/distro.img`,
        sums: "SUMS",
        hash: "sha256" as const,
        guest: "cloud-init" as const,
      };
      const allows = (address: string) => address === "127.0.0.1";
      store = createImageStore({ exec, images, imports, uploads: imports, now: Date.now, allows, catalogue: [entry] });
    });

    const diskOf = ([action]: readonly Action[]) => action?.Steps.find(({ Name }) => Name === "Disk");
    const isShown = (all: readonly Action[]) =>
      /^fetches image distro: \d+ % of \d+ MB$/.test(diskOf(all)?.Detail ?? "");
    const create = (Name: string) => harness.client.createServer({ body: { Name, ImageID: "distro" } });
    const readImage = async () =>
      (await harness.client.listImages()).find(({ Name }) => Name === "distro") ?? assert.fail("it is not listed");
    const waitForImage = (ID: number, until: (image: Image) => boolean) =>
      harness.client.waitFor("readImage", { path: { id: ID } }, { until, timeout: 120_000 });

    test("a canceled download leaves the image available", async () => {
      const { client } = harness;
      const { ID, State, Progress } = await readImage();
      assert.deepEqual([State, Progress], ["Available", 0]);
      const made = await create("given-up");
      await waitForImage(ID, (image) => image.State === "New" && image.Progress > 0);
      await client.deleteServer({ path: { id: made.ID } });
      const { Progress: after } = await waitForImage(ID, (image) => image.State !== "New");
      assert.deepEqual([(await readImage()).State, after], ["Available", 0]);
      assert.deepEqual((await store.list()).images, []);
    });

    test("a start of the service discards a download that no step continues", async () => {
      const { ID } = await readImage();
      await harness.brume.store.write((tx) => updateImage(tx, ID, { state: "New", progress: 40 }));
      await harness.brume.restart();
      const { State, Progress } = await readImage();
      assert.deepEqual([State, Progress], ["Available", 0]);
    });

    test("image, action and events show the progress until the server has the image", async () => {
      const { client } = harness;
      const made = await create("first");
      const path = { id: made.ID };
      const seen = await client.waitFor("listActions", { path }, { until: isShown, timeout: 120_000 });
      const step = diskOf(seen);
      assert.equal(step?.State, "InProgress");
      const [, shown = ""] = /: (\d+) %/.exec(step?.Detail ?? "") ?? [];
      assert.ok(Number(shown) <= 50, `${shown} % of what is still to come`);
      const action = seen[0] ?? assert.fail("there is no action");
      const events = await client.listEvents({ query: { type: "action.changed", limit: 1000 } });
      const imageEvents = events
        .filter(({ ResourceID }) => ResourceID === action.ID)
        .map(({ Data }) => diskOf([Data as Action])?.Detail);
      assert.ok(imageEvents.includes(step?.Detail), "an event reports it");

      const { ID } = await readImage();
      const { Progress } = await waitForImage(ID, (image) => image.State === "New" && image.Progress > 0);
      const later = await waitForImage(ID, (image) => image.State !== "New" || image.Progress > Progress);
      assert.equal(later.State, "New");
      assert.ok(later.Progress <= 50, `${later.Progress} % of what is still to come`);
      const second = await create("second");

      gate.open();
      for (const { ID: id } of [made, second]) {
        const query = { path: { id } };
        const until = ([one]: readonly Action[]) => one?.EndDate !== null;
        const ended = await client.waitFor("listActions", query, { until, timeout: 120_000 });
        assert.deepEqual([ended[0]?.State, diskOf(ended)?.Detail], ["Completed", "10 GB from distro"]);
      }
      assert.deepEqual(
        (await store.list()).images.map(({ name }) => name),
        ["distro"],
      );
      const { State, Progress: whole } = await readImage();
      assert.deepEqual([State, whole], ["Active", 100]);
      const types = (await client.listEvents({ query: { limit: 1000 } })).map(({ Type }) => Type);
      assert.deepEqual(
        types.filter((type) => type.startsWith("image.")),
        [],
        "operator images have no events",
      );
    });
  },
  {
    machines: { images: [tiny.name, "distro"], offered: [tiny, distro] },
    images: { ensureFetched: async (name, options) => (await store.fetch(name, options)).name },
  },
);
