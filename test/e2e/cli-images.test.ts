/** `brume image upload` on a real service: progress, the checksum of the file, an interruption and its continuation. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Image } from "@brume/api/catalog.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { createOperatorImages } from "../../service/src/drivers/machine/image/operatorimages.ts";
import { type CommandLine, createCommandLine } from "../support/commandline.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-cli-images-"));
mkdirSync(join(folder, "images"));
const operator = createOperatorImages({ exec, dataFolder: folder, isOwn: () => true, now: Date.now }, true);
const disk = Buffer.concat([Buffer.alloc(512, 1), randomBytes(4_000_000)]);
const file = join(folder, "golden.raw");
writeFileSync(file, disk);
const sha256 = createHash("sha256").update(disk).digest("hex");
let brume: TestService;
let cli: CommandLine;
before(async () => {
  const uploadFolder = join(folder, "uploads");
  brume = await createTestService("sqlite", { uploadFolder, images: operator, machines: { images: null } });
  cli = createCommandLine(brume.url, brume.token);
});
after(async () => {
  cli.close();
  await brume.close();
  rmSync(folder, { recursive: true });
});

test("a file is sent with progress, checked and converted", async () => {
  const line = ["image", "upload", file, "--family", "Bsd", "--label", "a=b", "--sha256", sha256, "-o", "json"];
  const { code, out, err } = await cli(line, { terminal: 100 });
  assert.equal(code, 0, err);
  const { Name, State, Family, Labels } = JSON.parse(out) as Image;
  assert.deepEqual([Name, State, Family, Labels], ["golden", "Active", "Bsd", { a: "b" }]);
  assert.match(err, /golden: computes the SHA-256: 100 %/);
  assert.match(err, /golden: \d+ % {2}[\d.]+ MB of 4\.0 MB/);
});

test("an interrupted upload is continued by the same command", async () => {
  const begun = await brume.client.createImage({ body: { Name: "late", Size: disk.length, Sha256: sha256 } });
  const path = { id: begun.ID };
  const content = new Uint8Array(disk.subarray(0, 3_000_000));
  await brume.client.writeImageContent({ path, content, range: `bytes 0-2999999/${disk.length}` });
  const { code, out, err } = await cli(["image", "upload", file, "--name", "late", "-o", "name"]);
  assert.equal(code, 0, err);
  assert.match(err, new RegExp(`Continues the upload of image ${begun.ID} \\(late\\)\\.`));
  assert.equal(out.trim(), "late");
  assert.equal((await brume.client.readImage({ path })).State, "Active");
});

test("a wrong checksum, a missing file and a file that is no disk are errors", async () => {
  const wrong = await cli(["image", "upload", file, "--sha256", "a".repeat(64)]);
  assert.deepEqual([wrong.code, /is [0-9a-f]{64}, not a{64}/.test(wrong.err)], [2, true], wrong.err);
  const none = await cli(["image", "upload", join(folder, "none")]);
  assert.deepEqual([none.code, /none does not exist/.test(none.err)], [2, true], none.err);
  const page = join(folder, "page.html");
  writeFileSync(page, "<html>".padEnd(1000));
  const bad = await cli(["image", "upload", page, "--name", "page"]);
  assert.deepEqual([bad.code, /page: .+/.test(bad.err)], [1, true], bad.err);
  const dry = await cli(["image", "upload", file, "--name", "dry", "--dry-run", "-o", "json"]);
  assert.deepEqual([dry.code, (JSON.parse(dry.out) as Image).State], [0, "Uploading"]);
  assert.ok((await brume.client.listImages()).every(({ Name }) => Name !== "dry"));
});
