/** Removal of images. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { removeImage } from "./folder.ts";

test("the removal of an image that is a symbolic link removes only the link", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "brume-folder-"));
  t.after(() => rmSync(root, { recursive: true }));
  const [images, elsewhere] = [join(root, "images"), join(root, "elsewhere")];
  for (const path of [images, elsewhere]) mkdirSync(path);
  writeFileSync(join(elsewhere, "image.json"), "kept");
  symlinkSync(elsewhere, join(images, "linked"));
  await removeImage(images, "linked");
  assert.equal(existsSync(join(images, "linked")), false);
  assert.equal(readFileSync(join(elsewhere, "image.json"), "utf8"), "kept");
});
