/**
 * Opens the Unix sockets of a server. The path of a socket is limited to 107 bytes, and a data folder may be deeper. So the folder is
 * opened, and the socket is addressed by the short path of that descriptor in /proc.
 */
import { closeSync, constants, openSync } from "node:fs";
import { connect, type Socket } from "node:net";

/** Connects to a socket within `limit` ms. Rejects with ENOENT or ECONNREFUSED if no process listens. */
export function openSocket(folder: string, name: string, limit = 2000): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    const socket = connect(`/proc/self/fd/${descriptor}/${name}`);
    const end = (error?: Error) => {
      clearTimeout(timer);
      closeSync(descriptor);
      socket.off("connect", end).off("error", end);
      // A later error of the socket must not end the service.
      socket.on("error", () => {});
      if (error === undefined) return resolve(socket);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(
      () => end(new Error(`socket "${name}" did not accept the connection within ${limit} ms`)),
      limit,
    );
    socket.on("connect", () => end());
    socket.on("error", end);
  });
}

/** Returns whether the error means that no process listens on the socket. */
export const isAbsent = (error: unknown): boolean =>
  ["ENOENT", "ECONNREFUSED"].includes((error as NodeJS.ErrnoException).code ?? "");
