import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { folderOf, makeFolder } from "../qemu/folder.ts";
import { createConsoles, followLog, lastLines, readLogFile } from "./log.ts";

const root = mkdtempSync(join(tmpdir(), "brume-console-"));
after(() => rmSync(root, { recursive: true }));
const path = (name: string) => join(root, name);

test("last lines, with and without an end of line", () => {
  assert.equal(lastLines("a\nb\nc\n", 2), "b\nc\n");
  assert.equal(lastLines("a\nb\nc", 2), "b\nc");
  assert.equal(lastLines("a\nb\n", 9), "a\nb\n");
  assert.deepEqual([lastLines("a\n", 0), lastLines("", 3), lastLines("\n\n", 1)], ["", "", "\n"]);
});

test("reads the boot progress from a log that grows in pieces", () => {
  const file = path("progress");
  const follower = followLog(file);
  assert.equal(follower.stage(), "starting");
  writeFileSync(file, "Linux version 6\r\nnot a login: here\r\n");
  assert.equal(follower.stage(), "starting");
  appendFileSync(file, "one log");
  assert.equal(follower.stage(), "starting");
  appendFileSync(file, "in: ");
  assert.equal(follower.stage(), "login");
  appendFileSync(file, "BRUME-READY inst");
  assert.equal(follower.stage(), "login");
  appendFileSync(file, "ance=i-1\r\n");
  assert.equal(follower.stage(), "ready");
});

test("does not follow a symbolic link", async () => {
  const folder = folderOf(root, 1);
  makeFolder(folder.run);
  assert.equal(await readLogFile(folder, {}), null);
  writeFileSync(folder.console, Buffer.from([0x61, 0xff, 0x0a]));
  assert.equal(await readLogFile(folder, {}), "a\ufffd\n");
  symlinkSync("/etc/passwd", folder.previousConsole);
  await assert.rejects(readLogFile(folder, { previous: true }), { code: "ELOOP" });
});

test("of serial consoles that are opened at the same time only one stays open", async (context) => {
  const folder = folderOf(root, 2);
  makeFolder(folder.run);
  const accepted = new Set<Socket>();
  const monitor = createServer((socket) => {
    accepted.add(socket);
    socket.on("close", () => accepted.delete(socket)).resume();
  });
  await new Promise<void>((resolve) => void monitor.listen(join(folder.run, "serial"), resolve));
  context.after(() => {
    for (const socket of accepted) socket.destroy();
    monitor.close();
  });
  const consoles = createConsoles(
    () => folder,
    () => true,
  );
  const open = async () => (await consoles.openSerial(2)) as Socket;
  const opened = await Promise.all([open(), open(), open()]);
  assert.equal(opened.filter(({ destroyed }) => !destroyed).length, 1);
  const last = await open();
  assert.deepEqual([opened.every(({ destroyed }) => destroyed), last.destroyed], [true, false]);
  last.destroy();
});
