/** Ports that a test chooses, and a program binds later. */
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that the kernel assigns to connections and to listeners without a port, so that no other program gets one of these. */
const [first, end] = [20_000, 32_000] as const;

/** Returns a port of 127.0.0.1 on which nothing listens by TCP or UDP. It stays free until the test binds it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(first, end);
    const [server, socket] = [createServer(), createSocket("udp4")];
    try {
      await once(server.listen(port, "127.0.0.1"), "listening");
      socket.bind(port, "127.0.0.1");
      await once(socket, "listening");
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    } finally {
      socket.close();
      if (server.listening) await once(server.close(), "close");
    }
  }
}
