/** Conformance suite of the driver that receives uploaded files: in the process and behind a host agent. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, before, describe, test } from "node:test";
import type { Uploads } from "../../service/src/drivers/content/interface.ts";
import { createUploads } from "../../service/src/drivers/content/uploads.ts";
import { type AgentLab, type Carrier, createAgentLab } from "../support/agentlab.ts";
import { waitUntil } from "../support/waituntil.ts";

const bytes = randomBytes(2_000_000);
const day = 86_400_000;

for (const carrier of ["near", "unix", "tls"] as const)
  describe(`uploads, ${carrier}`, () => {
    const root = mkdtempSync(join(tmpdir(), "brume-uploads-"));
    const folder = join(root, "uploads");
    let free = 2 ** 40;
    let lab: AgentLab | null = null;
    let uploads: Uploads;
    const driver = createUploads({ folder, now: Date.now, freeOf: async () => free });
    before(async () => {
      if (carrier === "near") uploads = driver;
      else {
        lab = await createAgentLab({ uploads: driver }, carrier satisfies Carrier);
        ({ uploads } = await lab.connect());
      }
    });
    after(async () => {
      await lab?.close();
      rmSync(root, { recursive: true });
    });

    const stored = (name: string): Buffer => readFileSync(join(folder, name));
    async function open(name: string, from: number, size = bytes.length) {
      const stream = await uploads.openUpload(name, from, size);
      stream.on("error", () => {});
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      stream.once("close", resolve);
      if ("resume" in stream) (stream as Duplex).resume();
      return { stream, closed };
    }
    async function write(name: string, from: number, to: number, size = bytes.length): Promise<void> {
      const { stream, closed } = await open(name, from, size);
      stream.end(bytes.subarray(from, to));
      await closed;
      // Over TLS the connection can be closed before the host has written everything.
      await uploads.syncUpload(name, Math.min(to, size));
    }

    test("a file grows part by part, and what was synced is reported", async () => {
      assert.equal(await uploads.syncUpload("own-1", 0), 0);
      await write("own-1", 0, 1_000_000);
      assert.equal(await uploads.syncUpload("own-1", 1_000_000), 1_000_000);
      await write("own-1", 1_000_000, bytes.length);
      assert.equal(await uploads.syncUpload("own-1", bytes.length), bytes.length);
      assert.ok(stored("own-1").equals(bytes));
      await uploads.removeUpload("own-1");
      await uploads.removeUpload("own-1");
      assert.equal(await uploads.syncUpload("own-1", 0), 0);
    });

    test("a file continues only where something is stored, and loses what follows", async () => {
      await write("own-2", 0, 500);
      await assert.rejects(uploads.openUpload("own-2", 501, 1000), /500 bytes, less than 501/);
      await write("own-2", 300, 400);
      assert.ok(stored("own-2").equals(bytes.subarray(0, 400)));
      await write("own-2", 400, 1100, 1000);
      assert.ok((await uploads.syncUpload("own-2", 1100)) <= 1000, "never more than its size");
      await uploads.removeUpload("own-2");
    });

    test("a stream that is cut leaves what arrived, and a later stream ends the one before it", async () => {
      const first = await open("own-3", 0);
      first.stream.write(bytes.subarray(0, 100_000));
      assert.equal(await uploads.syncUpload("own-3", 100_000), 100_000, "waits for bytes that are on the way");
      assert.equal(await uploads.syncUpload("own-3", 0), 100_000, "while it is written");
      await write("own-3", 100_000, 200_000);
      await first.closed;
      assert.ok(stored("own-3").equals(bytes.subarray(0, 200_000)));
      const second = await open("own-3", 200_000);
      second.stream.write(bytes.subarray(200_000, 250_000));
      assert.equal(await uploads.syncUpload("own-3", 250_000), 250_000);
      second.stream.destroy();
      await second.closed;
      await waitUntil(
        "250,000 synced bytes",
        () => uploads.syncUpload("own-3", 0),
        (count) => count >= 250_000,
      );
      const third = await open("own-3", 250_000);
      await uploads.removeUpload("own-3");
      await third.closed;
      assert.ok(!existsSync(join(folder, "own-3")));
    });

    test("1 GiB of the disk stays free, also if others fill it meanwhile", async () => {
      free = 2 ** 30 + 1000;
      await assert.rejects(uploads.openUpload("own-4", 0, 1001), /no space for 1001 bytes/);
      const { stream, closed } = await open("own-4", 0, 1000);
      free = 2 ** 30;
      stream.end(bytes.subarray(0, 1000));
      await closed;
      assert.equal(await uploads.syncUpload("own-4", 1000), 0);
      free = 2 ** 40;
      await uploads.removeUpload("own-4");
    });

    test("names are no paths, links are not followed, and forgotten files are removed", async () => {
      const secret = join(root, "secret");
      writeFileSync(secret, "secret");
      symlinkSync(secret, join(folder, "own-5"));
      await assert.rejects(uploads.openUpload("own-5", 0, 10));
      await assert.rejects(uploads.syncUpload("own-5", 0));
      for (const name of ["../secret", "a/b", "..", ""]) await assert.rejects(uploads.openUpload(name, 0, 10), name);
      await uploads.removeUpload("own-5");
      assert.equal(readFileSync(secret, "utf8"), "secret");
      await write("own-6", 0, 10);
      await write("own-7", 0, 10);
      const old = new Date(Date.now() - 9 * day);
      utimesSync(join(folder, "own-6"), old, old);
      utimesSync(join(folder, "own-7"), old, old);
      await write("own-7", 10, 20);
      assert.deepEqual(readdirSync(folder), ["own-7"]);
    });
  });
