/**
 * Own images (docs/spec.md#image, #image-location-key-and-private-network-endpoints, #backups-and-images): creation from servers, import,
 * backups, deletion.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Image } from "@brume/api/catalog.ts";
import type { Server } from "@brume/api/server.ts";
import type { ImageOrigin, ImportText, TransferOptions } from "../../service/src/drivers/machine/interface.ts";
import { onSqlite, refused } from "../support/harness.ts";
import { createMovableClock } from "../support/networkfixture.ts";
import { createServerApiFixture, pass, type ServerApiFixture, stepsOf, typesOf } from "../support/serverapifixture.ts";

const clock = createMovableClock();
const Sha256 = "a".repeat(64);
const path = ({ ID }: { readonly ID: number }) => ({ id: ID });
const day = 24 * 3600;

/** Result of the next import, by file or address. */
async function bring(
  folder: string,
  _about: ImportText,
  origin: ImageOrigin,
  { signal, progress }: TransferOptions = {},
): Promise<{ readonly hdd: number } | { readonly refused: string }> {
  const what = JSON.stringify(origin);
  if (what.includes("unsafe")) return { refused: "The image has a backing file." };
  if (what.includes("slow"))
    await new Promise((_, reject) => {
      progress?.(50, 100);
      signal?.addEventListener("abort", () => reject(signal.reason as Error));
    });
  assert.match(folder, /^own-\d+$/);
  return { hdd: 3 };
}

const judge = async (origin: ImageOrigin) =>
  JSON.stringify(origin).includes("none") ? { refused: "There is nothing." } : null;

onSqlite(
  "images",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });
    const make = (body: object) => harness.client.createImage({ body: body as { Name: string } }, { wait: 60 });

    test("has an ETag that its state does not change", async () => {
      const server = await fixture.server();
      const release = harness.brume.machines.hold("ensureImage");
      const image = await harness.client.createImage({ body: { Name: "tagged", ServerID: server.ID } });
      const early = await harness.client.raw.readImage({ path: path(image) });
      release();
      await harness.client.waitFor("readImage", { path: path(image) }, { timeout: 120_000 });
      const late = await harness.client.raw.readImage({ path: path(image) });
      assert.deepEqual([early.answer.State, late.answer.State, late.answer.Progress], ["New", "Active", 100]);
      assert.equal(late.etag, early.etag);
    });

    describe("of a server", () => {
      test("an image is created after earlier actions of the server, and other servers can use it", async () => {
        const server = await fixture.server({ HDD: 12 });
        harness.brume.machines.write(server.ID, "what was written");
        await fixture.newEvents();
        const requested = await harness.client.createImage({
          body: { Name: "Web base", ServerID: server.ID, Labels: { a: "b" } },
        });
        assert.deepEqual(
          [
            requested.State,
            requested.Type,
            requested.TechName,
            requested.ServerID,
            requested.DCLocation,
            requested.Progress,
            requested.Labels,
          ],
          ["New", "Client", "Web-base", server.ID, "Local", 0, { a: "b" }],
        );
        const done = await harness.client.waitFor("readImage", { path: path(requested) }, { timeout: 120_000 });
        assert.deepEqual([done.State, done.Progress, done.Hdd], ["Active", 100, 12]);
        assert.deepEqual([requested.Identity, done.Identity], [null, { Removed: true, Detail: "" }]);
        assert.deepEqual(typesOf((await fixture.newEvents()).filter(({ Resource }) => Resource === "image")), [
          "image.created",
          "image.changed",
        ]);
        const other = await fixture.server({ ImageID: requested.ID, HDD: 12 });
        assert.deepEqual([other.Image, harness.brume.machines.read(other.ID)], ["Web base", "what was written"]);
        await fixture.remove(server.ID);
        await harness.client.deleteImage({ path: path(requested) });
        await refused(harness.client.readImage({ path: path(requested) }), "image_not_found");
        assert.equal(harness.brume.machines.read(other.ID), "what was written");
        assert.equal((await fixture.read(other.ID)).Image, "Web base");
      });

      test("invalid requests are rejected", async () => {
        const server = await fixture.server();
        await refused(make({ Name: "x", ServerID: 99_999 }), "validation_failed", { "/ServerID": "unknown_reference" });
        await refused(make({ Name: "x" }), "validation_failed", { "/ServerID": "field_required" });
        await refused(make({ Name: "x", ServerID: server.ID, File: "a", Url: "http://a/" }), "validation_failed", {
          "/File": "fields_conflict",
          "/Url": "fields_conflict",
        });
        await refused(harness.client.deleteImage({ path: { id: 1 } }), "stock_image");
        const withoutQuota = await harness.neighbour({ Images: 0 });
        await refused(withoutQuota.client.createImage({ body: { Name: "x", File: "disk.raw" } }), "quota_exceeded");
        const dry = await harness.client.createImage({ body: { Name: "dry", ServerID: server.ID } }, { dryRun: true });
        assert.deepEqual([dry.ID, dry.State], [0, "New"]);
        assert.deepEqual(await harness.client.listImages({ query: { name: "dry" } }), []);
      });

      test("an image that is deleted early is canceled", async () => {
        const server = await fixture.server();
        const release = harness.brume.machines.hold("ensureSnapshot");
        const image = await harness.client.createImage({ body: { Name: "late", ServerID: server.ID } });
        const stop = await fixture.order(server.ID, { Type: "PowerOff" });
        assert.equal(stop.State, "Postponed");
        await harness.client.deleteImage({ path: path(image) });
        release();
        assert.equal((await fixture.ended(stop)).State, "Completed");
        assert.deepEqual((await fixture.actions(server.ID)).map(stepsOf).flat().length, 5);
      });
    });

    describe("imported", () => {
      test("from a file or an address", async () => {
        const file = await make({ Name: "old disk", File: "disk.raw", Family: "Bsd", MinRAM: 256 });
        assert.deepEqual(
          [file.State, file.Family, file.MinRAM, file.Hdd, file.ServerID, file.DCLocation],
          ["Active", "Bsd", 256, 3, null, null],
        );
        const url = await make({ Name: "far disk", Url: "https://images.example/disk.qcow2", Sha256 });
        assert.deepEqual([url.State, url.Family, url.MinRAM], ["Active", "Linux", 128]);
      });

      test("unsuitable files are rejected", async () => {
        await refused(make({ Name: "x", Url: "https://images.example/a" }), "validation_failed", {
          "/Sha256": "field_required",
        });
        for (const Url of ["ftp://a/b", "file:///etc/passwd", "https://me:secret@a/b", "nothing"])
          await refused(make({ Name: "x", Url, Sha256 }), "validation_failed", { "/Url": "format_invalid" });
        await refused(make({ Name: "x", Url: "http://a/", Sha256: "z" }), "validation_failed");
        const known = await harness.client.listImages();
        for (const dryRun of [false, true]) {
          const createImage = (body: object) =>
            harness.client.createImage({ body: { Name: "x", ...body } }, { dryRun });
          await refused(createImage({ File: "none" }), "validation_failed", { "/File": "unknown_reference" });
          await refused(createImage({ Url: "http://none/", Sha256 }), "validation_failed", {
            "/Url": "value_not_allowed",
          });
        }
        assert.deepEqual(await harness.client.listImages(), known);
        const unsafe = await make({ Name: "unsafe", File: "unsafe.qcow2" });
        assert.deepEqual(
          [unsafe.State, unsafe.Error?.code, unsafe.Error?.detail],
          ["Failed", "disk_failed", "The image has a backing file."],
        );
        await refused(
          harness.client.createServer({ body: { Name: "x", ImageID: String(unsafe.ID) } }),
          "image_not_ready",
        );
        await harness.client.deleteImage({ path: path(unsafe) });
      });

      test("an image can be deleted during its import", async () => {
        const slow = await harness.client.createImage({ body: { Name: "slow", File: "slow.raw" } });
        assert.equal(slow.State, "New");
        await harness.client.deleteImage({ path: path(slow) });
        await refused(harness.client.readImage({ path: path(slow) }), "image_not_found");
        const open = () =>
          harness.brume.store.read
            .selectFrom("task")
            .select("id")
            .where("subject", "=", "image")
            .where("subject_id", "=", slow.ID)
            .where("end_date", "is", null)
            .execute();
        await harness.client.waitFor("readBalance", {}, { until: () => true });
        for (let left = (await open()).length; left > 0; left = (await open()).length) await pass(harness, clock, 1);
      });
    });

    describe("backups", () => {
      test("are created daily, can be used for a rebuild, and are deleted by age", async () => {
        const server = await fixture.server({ isBackupActive: true, BackupPeriod: 7 });
        harness.brume.machines.write(server.ID, "as it was");
        const backups = async (): Promise<Image[]> =>
          (await harness.client.listImages()).filter(
            ({ Type, ServerID }) => Type === "Backup" && ServerID === server.ID,
          );
        const until = async (fits: (found: readonly Image[]) => boolean): Promise<Image[]> => {
          for (;;) {
            const found = await backups();
            if (fits(found)) return found;
            await pass(harness, clock, 700);
          }
        };
        const isDone = ({ State }: Image): boolean => State === "Active";
        const [first] = await until((found) => found.length === 1 && found.every(isDone));
        assert.ok(first);
        const events = (await fixture.newEvents()).filter(
          ({ Resource, ResourceID }) => Resource === "image" && ResourceID === first.ID,
        );
        assert.deepEqual(typesOf(events), ["image.created", "image.changed"]);
        assert.deepEqual(first.Identity, { Removed: false, Detail: "it was kept as it is" });
        const { Usage } = await harness.client.readOwnProject();
        const projectImages = (await harness.client.listImages()).filter(
          ({ Type, State }) => Type === "Client" && State !== "Failed",
        );
        assert.equal(Usage.Images, projectImages.length, "backups count in no quota");
        harness.brume.machines.write(server.ID, "broken");
        await harness.client.rebuildServer({ path: path(server), body: { ImageId: String(first.ID) } }, { wait: 60 });
        assert.equal(harness.brume.machines.read(server.ID), "as it was");
        await pass(harness, clock, day);
        await until((found) => found.length === 2 && found.every(isDone));
        await harness.client.updateServer({ path: path(server), body: { isBackupActive: false } });
        await pass(harness, clock, 7 * day);
        await until((found) => found.length === 0);
      });

      test("that fail are reported, and retried on the same day", async () => {
        harness.brume.machines.fail("ensureSnapshot", 1000);
        const server = await fixture.server({ isBackupActive: true });
        const read = () => harness.client.readServer({ path: path(server) });
        while ((await read()).Error === null) await pass(harness, clock, 100);
        const { Error: error } = await read();
        assert.equal(error?.code, "backup_failed");
        assert.match(error?.detail ?? "", /tried again within the hour: .*simulated failure of ensureSnapshot/);
        const metric = new RegExp(`^brume_server_backup_failed\\{server="${server.ID}"\\} 1$`, "m");
        assert.match(await harness.client.readMetrics(), metric);
        const isReported = (await fixture.newEvents()).some(
          ({ Type, ResourceID, Data }) =>
            Type === "server.changed" && ResourceID === server.ID && (Data as Server).Error?.code === "backup_failed",
        );
        assert.ok(isReported);
        harness.brume.machines.fail("ensureSnapshot", 0);
        const failed = clock.now();
        // Past the pause after a failure; then the clock stops, so the retry is on the same day.
        for (let part = 0; part < 4; part++) await pass(harness, clock, 700);
        await fixture.read(server.ID, ({ Error: trouble }) => trouble === null);
        const images = (await harness.client.listImages()).filter(({ ServerID }) => ServerID === server.ID);
        assert.deepEqual(
          images.map(({ Type, State }) => [Type, State]),
          [["Backup", "Active"]],
        );
        const made = Date.parse(images[0]?.DateCreate ?? "");
        assert.ok(made < failed + day * 1000, `it was tried again after ${(made - failed) / 1000} s`);
        assert.doesNotMatch(await harness.client.readMetrics(), metric);
      });
    });
  },
  { clock, images: { ensureImported: bring, checkOrigin: judge } },
);
