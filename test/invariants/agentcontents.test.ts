/** Images and disk copies through a host agent: checksums, transfers that are interrupted, and files that are not part of a content. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex, PassThrough } from "node:stream";
import { after, before, describe, test } from "node:test";
import { receiveFile } from "../../service/src/agent/receive.ts";
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
const local = createContents({ images: [images], servers });
const sha256 = createHash("sha256").update(disk).digest("hex");

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
      const never = { ...contents, openFile: async () => Duplex.from([]) };
      await assert.rejects(receiveFile(never, { image: "mine" }, file, `${target}.never`), /ended after 0 of/);
    });
  });
