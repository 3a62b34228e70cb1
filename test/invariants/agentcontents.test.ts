/** Images and disk copies through a host agent: checksums, transfers that are interrupted, and files that are not part of a content. */
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
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex, PassThrough, Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { receiveFile } from "../../service/src/agent/receive.ts";
import { sendContent } from "../../service/src/agent/send.ts";
import { createContents } from "../../service/src/drivers/content/folder.ts";
import type { Contents } from "../../service/src/drivers/content/interface.ts";
import { type AgentLab, type Carrier, createAgentLab } from "../support/agentlab.ts";

const root = mkdtempSync(join(tmpdir(), "brume-contents-"));
after(() => rmSync(root, { recursive: true }));
const [images, servers] = [join(root, "images"), join(root, "servers")];
const disk = randomBytes(3_000_000);
for (const folder of ["images/mine", "servers/5.copy/disk-1", "canary"])
  mkdirSync(join(root, folder), { recursive: true });
writeFileSync(join(images, "mine", "disk.qcow2"), disk);
writeFileSync(join(images, "mine", "image.json"), "{}");
writeFileSync(join(images, "mine", "disk.qcow2.part"), "unfinished");
writeFileSync(join(servers, "5.copy", "disk-1", "0.qcow2"), disk);
writeFileSync(join(servers, "5.copy", "label.json"), "");
writeFileSync(join(root, "canary", "secret"), "secret");
symlinkSync(join(root, "canary"), join(images, "link"));
symlinkSync(join(root, "canary", "secret"), join(images, "mine", "secret"));
symlinkSync(join(root, "canary"), join(images, "mine", "folder"));
/** Contents of this folder; an image is used if it has a manifest. */
const contentsOf = (folder: string, now = Date.now, freeOf?: () => Promise<number>): Contents =>
  createContents({
    images: [join(folder, "images")],
    servers: join(folder, "servers"),
    incoming: join(folder, "incoming"),
    async checkImage(place, name) {
      if (!existsSync(join(place, name, "image.json"))) throw new Error("it has no manifest");
    },
    now,
    ...(freeOf && { freeOf }),
  });
const local = contentsOf(root);
const sha256 = createHash("sha256").update(disk).digest("hex");

const never = async () => assert.fail("it was called");

/** Ends each stream after `most` bytes, without an error, as a lost connection. */
const cut = (contents: Contents, most: number, positions: number[]): Contents => ({
  ...contents,
  async openFile(of, file, from) {
    positions.push(from);
    const stream = await contents.openFile(of, file, from);
    const short = new PassThrough();
    let open = most;
    stream.on("data", (part: Buffer) => {
      short.write(part.subarray(0, open));
      open -= part.length;
      if (open > 0) return;
      stream.destroy();
      short.end();
    });
    stream.on("end", () => short.end());
    return short;
  },
});

for (const carrier of ["unix", "tls"] as Carrier[])
  describe(`contents over ${carrier}`, () => {
    let lab: AgentLab;
    let contents: Contents;
    before(async () => {
      lab = await createAgentLab({ contents: local }, carrier);
      ({ contents } = await lab.connect());
    });
    after(() => lab.close());

    test("only finished regular files are listed, with their checksums", async () => {
      const files = await contents.listFiles({ image: "mine" });
      assert.deepEqual(
        files.map(({ name, bytes }) => [name, bytes]),
        [
          ["disk.qcow2", disk.length],
          ["image.json", 2],
        ],
      );
      assert.equal(files[0]?.sha256, sha256);
      assert.deepEqual(
        (await contents.listFiles({ copy: 5 })).map(({ name }) => name),
        ["disk-1/0.qcow2", "label.json"],
      );
      for (const content of [{ image: "none" }, { image: "link" }, { copy: 6 }])
        await assert.rejects(contents.listFiles(content), /there is no/);
      await assert.rejects(contents.openFile({ image: "mine" }, 2, 0), /there is no file 2/);
    });

    test("a transfer continues after interruptions, and gets its name only when it is complete", async () => {
      const positions: number[] = [];
      const [file, empty] = [
        (await contents.listFiles({ image: "mine" }))[0],
        (await contents.listFiles({ copy: 5 }))[1],
      ];
      assert.ok(file !== undefined && empty !== undefined);
      const target = join(root, `received-${carrier}`);
      await receiveFile(cut(contents, 1_000_000, positions), { image: "mine" }, file, target);
      assert.deepEqual(positions, [0, 1_000_000, 2_000_000]);
      assert.ok(readFileSync(target).equals(disk));
      await receiveFile(contents, { copy: 5 }, empty, `${target}.empty`);
      assert.equal(readFileSync(`${target}.empty`).length, 0);
      const wrong = { ...file, sha256: "0".repeat(64) };
      await assert.rejects(receiveFile(contents, { image: "mine" }, wrong, `${target}.wrong`), /SHA-256/);
      assert.deepEqual([existsSync(`${target}.wrong`), existsSync(`${target}.wrong.part`)], [false, false]);
      const without = { ...contents, openFile: async () => Duplex.from([]) };
      await assert.rejects(receiveFile(without, { image: "mine" }, file, `${target}.never`), /ended after 0 of/);
    });

    test("an agent receives a content after interruptions, and it exists only when it is complete", async (t) => {
      const folder = join(root, `other-${carrier}`);
      mkdirSync(join(folder, "images"), { recursive: true });
      const other = await createAgentLab({ contents: contentsOf(folder) }, carrier);
      t.after(() => other.close());
      const { contents: remote } = await other.connect();
      const target = join(folder, "images", "theirs");
      const positions: number[] = [];
      let sink: Duplex | undefined;
      const remembered: Contents = {
        ...remote,
        async writeFile(of, file, from) {
          positions.push(from);
          assert.ok(!existsSync(target));
          sink = (await remote.writeFile(of, file, from)) as Duplex;
          return sink;
        },
      };
      /** The connection breaks first while the file is being opened, then in the middle of it. */
      const breaking: Contents = {
        ...local,
        async openFile(of, file, from) {
          const [attempt, connection] = [positions.length, sink ?? assert.fail()];
          if (attempt === 1) await new Promise((done) => connection.once("close", done).destroy(new Error("it broke")));
          if (attempt === 1) return Readable.from([]);
          const stream = await local.openFile(of, file, from);
          const parts = async function* () {
            let sent = 0;
            for await (const part of stream) {
              if (attempt === 2 && sent > 1_000_000) connection.destroy();
              sent += (part as Buffer).length;
              yield part as Buffer;
            }
          };
          return Readable.from(parts());
        },
      };
      await sendContent(breaking, { image: "mine" }, remembered, { image: "theirs" });
      assert.equal(positions.length, 4);
      assert.ok(readFileSync(join(target, "disk.qcow2")).equals(disk));
      assert.equal(readFileSync(join(target, "image.json"), "utf8"), "{}");
      assert.deepEqual(readdirSync(join(folder, "incoming")), []);
      // Again: nothing is sent.
      await sendContent(local, { image: "mine" }, { ...remote, writeFile: never }, { image: "theirs" });
      await sendContent(local, { copy: 5 }, remote, { copy: 7 });
      assert.ok(readFileSync(join(folder, "servers", "7.copy", "disk-1", "0.qcow2")).equals(disk));
      await assert.rejects(sendContent(local, { copy: 5 }, remote, { image: "theirs" }), /another content/);
      await assert.rejects(sendContent(local, { copy: 5 }, remote, { image: "strange" }), /no manifest/);
    });

    test("an agent refuses files that are not as announced", async (t) => {
      const folder = join(root, `strict-${carrier}`);
      mkdirSync(join(folder, "images"), { recursive: true });
      symlinkSync(join(root, "canary"), join(folder, "images", "link"));
      let hours = 0;
      const other = await createAgentLab(
        { contents: contentsOf(folder, () => Date.now() + hours * 3_600_000) },
        carrier,
      );
      t.after(() => other.close());
      const { contents: remote } = await other.connect();
      const of = { image: "new" };
      const file = { number: 0, name: "image.json", bytes: 2, sha256: createHash("sha256").update("{}").digest("hex") };
      const write = async (text: string, from = 0): Promise<void> => {
        const sink = (await remote.writeFile(of, 0, from)) as Duplex;
        const closed = once(sink.resume(), "close");
        sink.end(text);
        await closed;
      };
      await assert.rejects(remote.completeFiles(of), /must be listed first/);
      await assert.rejects(remote.writeFile(of, 0, 0), /must be listed first/);
      for (const name of ["../image.json", "/etc/passwd", "a/b/c", ".hidden"])
        await assert.rejects(remote.expectFiles(of, [{ ...file, name }]), /pattern/);
      for (const files of [[{ ...file, number: 1 }], [file, file], [file, { ...file, number: 1 }]])
        await assert.rejects(remote.expectFiles(of, files), /list of files/);
      await assert.rejects(remote.expectFiles(of, [{ ...file, bytes: 1e15 }]), /no space/);
      await assert.rejects(remote.expectFiles({ image: "link" }, [file]), /there is no image link/);
      assert.deepEqual(await remote.expectFiles(of, [file]), [0]);
      await assert.rejects(remote.writeFile(of, 0, 1), /less than 1 bytes/);
      await assert.rejects(remote.writeFile(of, 1, 0), /no file 1/);
      await write("{}and more");
      await assert.rejects(remote.completeFiles(of), /not complete/);
      await write("[]");
      await assert.rejects(remote.completeFiles(of), /SHA-256/);
      await write("{");
      assert.deepEqual(await remote.expectFiles(of, [file]), [1]);
      await write("}", 1);
      // The agent has closed the file: one that is being written is not removed.
      assert.deepEqual(await remote.expectFiles(of, [file]), [2]);
      // Another list is another content. What was not continued for a day is removed.
      hours = 25;
      await remote.expectFiles(of, [{ ...file, bytes: 3 }]);
      await remote.expectFiles({ image: "next" }, [file]);
      assert.equal(readdirSync(join(folder, "incoming")).length, 2);
      assert.ok(!existsSync(join(folder, "images", "new")));
      for (let copy = 1; copy <= 62; copy++) await remote.expectFiles({ copy }, [file]);
      await assert.rejects(remote.expectFiles({ copy: 63 }, [file]), /64 incomplete contents/);
      await remote.expectFiles({ copy: 62 }, [file]);
    });

    test("contents leave 1 GiB of the disk free, also if others fill it meanwhile", async (t) => {
      const folder = join(root, `full-${carrier}`);
      let free = 2 ** 31;
      const other = await createAgentLab({ contents: contentsOf(folder, Date.now, async () => free) }, carrier);
      t.after(() => other.close());
      const { contents: remote } = await other.connect();
      const of = { copy: 1 };
      const file = { number: 0, name: "disk", bytes: 2 ** 30, sha256: "0".repeat(64) };
      await assert.rejects(remote.expectFiles(of, [{ ...file, bytes: 2 ** 30 + 1 }]), /no space/);
      assert.deepEqual(await remote.expectFiles(of, [file]), [0]);
      free = 2 ** 30 + 1000;
      const sink = ((await remote.writeFile(of, 0, 0)) as Duplex).resume();
      sink.on("error", () => {});
      const closed = new Promise((resolve) => void sink.once("close", resolve));
      sink.end(Buffer.alloc(5000));
      await closed;
      free = 2 ** 31;
      assert.deepEqual(await remote.expectFiles(of, [file]), [0]);
    });
  });
