import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { downloadText } from "./download.ts";

test("a server that switches protocols ends the download", async () => {
  const server = createServer((_request, { socket }) => {
    socket?.write("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n");
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  try {
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/image`);
    const outcome = downloadText(url, { allows: () => true, pause: 1 }).then(
      () => "a text",
      (error: unknown) => (error as Error).message,
    );
    assert.match(await Promise.race([outcome, pause(5000, "no end")]), /^"127.* returned status 101 for \/image/);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
