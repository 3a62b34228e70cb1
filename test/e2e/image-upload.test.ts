/**
 * Upload of images (docs/images.md#uploads): content in parts, interruptions, wrong and hostile content. Files are checked and converted as
 * on a real host; servers are simulated.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Image } from "@brume/api/catalog.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { createOperatorImages } from "../../service/src/drivers/machine/image/operatorimages.ts";
import { onEveryDatabase, refused } from "../support/harness.ts";
import { createMovableClock } from "../support/networkfixture.ts";
import { createServerApiFixture, pass, type ServerApiFixture } from "../support/serverapifixture.ts";

let [dataFolder, images, uploadFolder] = ["", "", ""];
after(() => rmSync(dataFolder, { recursive: true, force: true }));
const clock = createMovableClock();
/** What the host reports as the reason why an upload has no space. */
let full: string | null = null;
/** The host does not respond. */
let isAway = false;

const raw = Buffer.concat([Buffer.alloc(512, 1), randomBytes(3_000_000), Buffer.alloc(1_000_000)]);
const sumOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const blobOf = (bytes: Buffer): Blob => new Blob([new Uint8Array(bytes)]);
const path = ({ ID }: Pick<Image, "ID">) => ({ id: ID });
const rangeOf = (from: number, to: number, whole = raw.length): string => `bytes ${from}-${to - 1}/${whole}`;

/** Returns a qcow2 with a backing file. */
async function makeHostile(): Promise<Buffer> {
  const [base, overlay] = [join(dataFolder, "base.raw"), join(dataFolder, "overlay.qcow2")];
  writeFileSync(base, Buffer.alloc(1_000_000));
  await exec.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "raw", overlay]);
  return readFileSync(overlay);
}

onEveryDatabase(
  "uploads",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });
    const create = (more: object = {}): Promise<Image> =>
      harness.client.createImage({ body: { Name: "sent", Size: raw.length, ...more } });
    const send = (image: Pick<Image, "ID">, from: number, to: number, bytes: Buffer = raw) =>
      harness.client.writeImageContent({
        path: path(image),
        content: new Uint8Array(bytes.subarray(from, to)),
        range: rangeOf(from, to, bytes.length),
      });
    const read = (image: Pick<Image, "ID">): Promise<Image> => harness.client.readImage({ path: path(image) });
    const settled = (image: Pick<Image, "ID">): Promise<Image> =>
      harness.client.waitFor("readImage", { path: path(image) }, { timeout: 120_000 });
    const upload = async (bytes: Buffer, more: object = {}): Promise<Image> => {
      const image = await harness.client.uploadImage({ Name: "sent", ...more }, blobOf(bytes));
      return settled(image);
    };

    /** Opens a request for the content and sends its first bytes. */
    async function begin(image: Pick<Image, "ID">, from: number, bytes: Buffer) {
      const { hostname, port } = new URL(harness.brume.url);
      const socket = connect(Number(port), hostname);
      await once(socket, "connect");
      const head = [
        `PUT /image/${image.ID}/content HTTP/1.1`,
        `Authorization: Bearer ${harness.token}`,
        `Content-Range: ${rangeOf(from, raw.length)}`,
        `Content-Length: ${raw.length - from}`,
      ];
      socket.write(`${head.join("\r\n")}\r\n\r\n`);
      socket.write(bytes);
      return socket;
    }
    const onDisk = (image: Pick<Image, "ID">): number => {
      const file = join(uploadFolder, `own-${image.ID}`);
      return existsSync(file) ? statSync(file).size : 0;
    };
    /** Resolves when the host has stored so many bytes. */
    async function arrived(image: Pick<Image, "ID">, bytes: number): Promise<void> {
      while (onDisk(image) < bytes) await new Promise((done) => setTimeout(done, 5));
    }

    test("a file in parts becomes an image, and a server can be created from it", async () => {
      await fixture.newEvents();
      const sha256 = sumOf(raw);
      const image = await create({ Sha256: sha256.toUpperCase(), Labels: { a: "b" }, Family: "Bsd" });
      assert.deepEqual(
        [image.State, image.Progress, image.Upload?.Size, image.Upload?.Received, image.Upload?.Sha256],
        ["Uploading", 0, raw.length, 0, sha256],
      );
      assert.ok(Date.parse(image.Upload?.Expires ?? "") > clock.now());
      await refused(harness.client.createServer({ body: { Name: "x", ImageID: String(image.ID) } }), "image_not_ready");
      assert.deepEqual(
        (await harness.client.listImages({ query: { state: "Uploading" } })).map(({ ID }) => ID),
        [image.ID],
      );
      const half = await send(image, 0, 1_000_000);
      assert.deepEqual([half.State, half.Upload?.Received, half.Progress], ["Uploading", 1_000_000, 24]);
      assert.equal(onDisk(image), 1_000_000);
      const rest = await send(image, 1_000_000, raw.length);
      assert.deepEqual([rest.State, rest.Upload], ["New", null]);
      const done = await settled(image);
      assert.deepEqual([done.State, done.Progress, done.Hdd, done.Family], ["Active", 100, 1, "Bsd"]);
      assert.deepEqual(readdirSync(uploadFolder), []);
      const own = (await fixture.newEvents()).filter(({ Resource }) => Resource === "image");
      assert.deepEqual(
        own.map(({ Type, Data }) => [Type, (Data as Image).State]),
        [
          ["image.created", "Uploading"],
          ["image.changed", "New"],
          ["image.changed", "Active"],
        ],
      );
      const audit = await harness.client.listAudit({ query: { resource: `image:${image.ID}` } });
      assert.deepEqual(audit.map(({ Operation, Status }) => `${Operation} ${Status}`).sort(), [
        "createImage 200",
        "writeImageContent 200",
      ]);
      const server = await fixture.server({ ImageID: image.ID });
      assert.equal(server.Image, "sent");
      const copy = join(dataFolder, `disk-${harness.kind}.raw`);
      const disk = join(images, `own-${image.ID}`, `disk-${sha256.slice(0, 16)}.qcow2`);
      await exec.run(["qemu-img", "convert", "-O", "raw", disk, copy]);
      assert.ok(readFileSync(copy).subarray(0, raw.length).equals(raw));
    });

    test("the client library uploads files and streams, and continues an upload", async () => {
      const seen: number[] = [];
      const image = await harness.client.uploadImage({ Name: "whole", Sha256: sumOf(raw) }, blobOf(raw), {
        onProgress: ({ Upload }) => seen.push(Upload?.Received ?? raw.length),
      });
      assert.deepEqual([seen[0], seen.at(-1)], [0, raw.length]);
      assert.ok(seen.length > 2, "it was sent in parts");
      assert.equal((await settled(image)).State, "Active");

      const begun = await create();
      await send(begun, 0, 1_500_000);
      async function* stream() {
        for (let at = 0; at < raw.length; at += 70_000) yield new Uint8Array(raw.subarray(at, at + 70_000));
      }
      const continued = await harness.client.uploadImage({ ID: begun.ID }, stream());
      assert.equal((await settled(continued)).State, "Active");
      await assert.rejects(harness.client.uploadImage({ ID: begun.ID }, blobOf(raw)), /is Active, so it waits for no/);
      const other = await create();
      await assert.rejects(
        harness.client.uploadImage({ ID: other.ID }, blobOf(raw.subarray(1))),
        new RegExp(`the file has ${raw.length - 1} bytes, and image ${other.ID}`),
      );
      await harness.client.deleteImage({ path: path(other) });
    });

    describe("interrupted", () => {
      test("by the client, it keeps what arrived", async () => {
        const image = await create();
        const socket = await begin(image, 0, raw.subarray(0, 700_000));
        await arrived(image, 700_000);
        socket.destroy();
        const { Upload } = await harness.client.waitFor(
          "readImage",
          { path: path(image) },
          { until: ({ Upload: now }) => now?.Received === 700_000 },
        );
        assert.equal(Upload?.Received, 700_000);
        const done = await harness.client.uploadImage({ ID: image.ID }, blobOf(raw));
        assert.equal((await settled(done)).State, "Active");
      });

      test("by a restart of the service, it keeps what arrived", async () => {
        const image = await create();
        const socket = await begin(image, 0, raw.subarray(0, 600_000));
        socket.on("error", () => {});
        await arrived(image, 600_000);
        await harness.brume.restart();
        assert.equal((await read(image)).Upload?.Received, 600_000);
        const done = await harness.client.uploadImage({ ID: image.ID }, blobOf(raw));
        assert.equal((await settled(done)).State, "Active");
      });

      test("by another request, the later one continues", async () => {
        const image = await create();
        const first = await begin(image, 0, raw.subarray(0, 500_000));
        let text = "";
        first.on("data", (part) => (text += String(part)));
        await arrived(image, 500_000);
        // It ends the first request, and cannot know yet what that has stored.
        await refused(send(image, 0, 100), "upload_conflict");
        while (!text.includes("\r\n\r\n{")) await once(first, "data");
        assert.match(text, /^HTTP\/1\.1 409 .*upload_conflict/s);
        first.destroy();
        assert.equal((await read(image)).Upload?.Received, 500_000);
        const done = await send(image, 500_000, raw.length);
        assert.equal(done.State, "New");
        await settled(image);
      });

      test("by a host that does not respond, the client waits and continues", async () => {
        isAway = true;
        await refused(create(), "engine_unavailable");
        isAway = false;
        const image = await create();
        await send(image, 0, 1000);
        isAway = true;
        await refused(send(image, 1000, 2000), "engine_unavailable");
        const sending = harness.client.uploadImage({ ID: image.ID }, blobOf(raw));
        await refused(send(image, 1000, 2000), "engine_unavailable");
        isAway = false;
        assert.equal((await settled(await sending)).State, "Active");
      });

      test("by its deletion, it leaves nothing", async () => {
        const image = await create();
        const socket = await begin(image, 0, raw.subarray(0, 500_000));
        await arrived(image, 500_000);
        await harness.client.deleteImage({ path: path(image) });
        const [answer] = (await once(socket, "data")) as [Buffer];
        assert.match(String(answer), /^HTTP\/1\.1 404 /);
        socket.destroy();
        await refused(read(image), "image_not_found");
        while (existsSync(join(uploadFolder, `own-${image.ID}`))) await pass(harness, clock, 1);
      });

      test("it is deleted when it is not continued", async () => {
        const image = await create();
        await send(image, 0, 1000);
        await pass(harness, clock, 20 * 3600);
        assert.equal((await read(image)).State, "Uploading");
        await send(image, 1000, 2000);
        await pass(harness, clock, 20 * 3600);
        assert.equal((await read(image)).Upload?.Received, 2000);
        for (let left = true; left; ) {
          await pass(harness, clock, 3600);
          left = (await harness.client.listImages()).some(({ ID }) => ID === image.ID);
        }
        while (existsSync(join(uploadFolder, `own-${image.ID}`))) await pass(harness, clock, 1);
        const [last] = (await fixture.newEvents())
          .filter(({ Resource, ResourceID }) => Resource === "image" && ResourceID === image.ID)
          .slice(-1);
        assert.equal(last?.Type, "image.deleted");
      });
    });

    describe("rejected", () => {
      test("with a position that does not continue it", async () => {
        const image = await create();
        await send(image, 0, 1000);
        for (const from of [0, 999, 1001]) await refused(send(image, from, 2000), "upload_conflict");
        const put = (headers: Record<string, string>, body = "1234") =>
          harness.request(`PUT /image/${image.ID}/content`, body, headers);
        for (const range of [
          `bytes 1000-1004/${raw.length}`,
          `bytes 1000-1002/${raw.length}`,
          `bytes 1000-1003/${raw.length + 1}`,
          "bytes 1000-999/*",
          "bytes 1000-1003/1002",
          `bytes 1000-1003/${"9".repeat(20)}`,
          "bytes=1000-1003",
          "lines 1-4/5",
        ])
          assert.equal((await put({ "Content-Range": range })).code, "content_range_invalid", range);
        const [first, last] = [`bytes 1000-1003/${raw.length}`, `bytes 1004-1007/*`];
        assert.equal(
          (await put({ "Content-Range": first, "Content-Encoding": "gzip" })).code,
          "media_type_not_supported",
        );
        const form = { "Content-Range": first, "Content-Type": "multipart/form-data; boundary=x" };
        assert.equal((await put(form)).code, "media_type_not_supported");
        assert.equal((await read(image)).Upload?.Received, 1000);
        const dry = await harness.request(`PUT /image/${image.ID}/content?dryRun=true`, "1234", {
          "Content-Range": first,
        });
        assert.deepEqual([dry.status, (dry.json as Image).Upload?.Received], [200, 1004]);
        assert.equal((await read(image)).Upload?.Received, 1000);
        assert.equal((await put({ "Content-Range": first })).status, 200);
        assert.equal((await put({ "Content-Range": last, "If-Match": '"image-1-7"' })).code, "etag_mismatch");
        assert.equal((await put({ "Content-Range": last })).status, 200);
        // Without a range the content is the whole file.
        assert.equal((await put({})).code, "upload_conflict");
        await harness.client.deleteImage({ path: path(image) });
      });

      test("with content beyond its size, and without any of it", async () => {
        const image = await create({ Size: 10 });
        for (const body of ["12345678901", "123456789"])
          assert.equal((await harness.request(`PUT /image/${image.ID}/content`, body)).code, "content_range_invalid");
        const stream = new Blob(["x".repeat(11)]).stream();
        const chunked = await fetch(`${harness.brume.url}/image/${image.ID}/content`, {
          method: "PUT",
          body: stream,
          duplex: "half",
          headers: { Authorization: `Bearer ${harness.token}` },
        });
        assert.equal(((await chunked.json()) as { code: string }).code, "content_range_invalid");
        assert.equal((await read(image)).Upload?.Received, 0);
        await harness.client.deleteImage({ path: path(image) });
      });

      test("of another project, or without the scope", async () => {
        const image = await create();
        const neighbour = await harness.neighbour();
        const weak = await harness.as(["server:read", "dns:write"]);
        const target = { path: path(image), content: new Uint8Array(1), range: rangeOf(0, 1) };
        await refused(neighbour.client.writeImageContent(target), "image_not_found");
        await refused(weak.client.writeImageContent(target), "scope_missing");
        await refused(harness.client.writeImageContent({ ...target, path: { id: 1 } }), "upload_conflict");
        assert.equal(onDisk(image), 0);
        const small = await harness.neighbour({ Images: 1 });
        await small.client.createImage({ body: { Name: "one", Size: 1 } });
        await refused(small.client.createImage({ body: { Name: "two", Size: 1 } }), "quota_exceeded");
        await harness.client.deleteImage({ path: path(image) });
      });

      test("without space on the host, before its first byte and later", async () => {
        await refused(create({ Size: 2 ** 42 }), "no_capacity");
        const image = await create();
        await send(image, 0, 1000);
        full = "The host is full.";
        await refused(create(), "no_capacity");
        await refused(send(image, 1000, 2000), "no_capacity");
        full = null;
        assert.equal((await send(image, 1000, 2000)).Upload?.Received, 2000);
        await harness.client.deleteImage({ path: path(image) });
      });

      test("with another checksum, with a backing file, and with what is no disk", async () => {
        const hostile = await makeHostile();
        const tries: readonly [Buffer, object, RegExp][] = [
          [raw, { Sha256: "a".repeat(64) }, /^The sha256 of the uploaded file is [0-9a-f]{64}; expected a{64}\.$/],
          [hostile, {}, /backing file/],
          [Buffer.from("<html>not found</html>".padEnd(2000)), {}, /./],
        ];
        for (const [bytes, more, detail] of tries) {
          const { ID, State, Error: error } = await upload(bytes, more);
          assert.deepEqual([State, error?.code], ["Failed", "disk_failed"]);
          assert.match(error?.detail ?? "", detail);
          assert.ok(!existsSync(join(images, `own-${ID}`)));
          await harness.client.deleteImage({ path: { id: ID } });
        }
        assert.deepEqual(
          readdirSync(images).filter((name) => name.endsWith(".part")),
          [],
        );
      });
    });
  },
  async () => {
    rmSync(dataFolder, { recursive: true, force: true });
    dataFolder = mkdtempSync(join(tmpdir(), "brume-upload-"));
    [images, uploadFolder] = [join(dataFolder, "images"), join(dataFolder, "uploads")];
    mkdirSync(images);
    const operator = createOperatorImages({ exec, dataFolder, isOwn: () => true, now: Date.now }, true);
    return {
      clock,
      uploadFolder,
      machines: { images: null },
      images: {
        ...operator,
        async checkOrigin(origin) {
          if (isAway) throw new Error("the agent does not respond");
          return full === null ? operator.checkOrigin(origin) : { refused: full };
        },
        listOperatorImages: async () => (await operator.listOperatorImages()).slice(0, 1),
      },
    };
  },
);
