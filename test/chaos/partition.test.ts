/** A network that is lost for longer than PostgreSQL keeps the lock of a service: another service can start, and the first one writes no more. */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { StorageError } from "../../service/src/store/db.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { whyNot } from "../support/hindrance.ts";

const program = join(import.meta.dirname, "partitionedwriter.ts");

for (const [lost, title] of [
  ["commit", "a commit that the network delays is not stored after another service has started"],
  ["lock", "another service can start if the response to a check of the lock was lost"],
] as const)
  test(title, { skip: whyNot("ip", "nft", "unshare", "hostname") }, async () => {
    const space = `brume-lost-${process.pid}`;
    execFileSync("ip", ["netns", "add", space]);
    try {
      execFileSync("ip", ["-n", space, "link", "set", "lo", "up"]);
      const command = ["netns", "exec", space, process.execPath, program, lost];
      const { stdout } = await promisify(execFile)("ip", command);
      assert.deepEqual(JSON.parse(stdout), { hasStarted: true, open: [] });
    } finally {
      execFileSync("ip", ["netns", "del", space]);
    }
  });

test("a session that PostgreSQL ends as soon as it begins does not end the process", async () => {
  const accepted = "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
  const text = "SFATAL\0C57P01\0Mended\0\0";
  const ended = `E\0\0\0${String.fromCharCode(4 + text.length)}${text}`;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    // The session of the guard has another name than those of readers.
    socket.once("data", (bytes) =>
      socket.write(bytes.includes("application_name\0brume\0") ? accepted + ended : accepted, "latin1"),
    );
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `postgresql://postgres@127.0.0.1:${(server.address() as AddressInfo).port}/postgres`;
  await assert.rejects(openPostgres(url, { log: () => {} }), StorageError);
  server.close();
});
