/**
 * Sockets of a server, by the folder they are in. A socket's path may have 107 bytes and a data folder is as deep as its owner
 * likes, so the folder is opened and the socket is called by that descriptor's short name in /proc.
 */
import { closeSync, constants, openSync } from "node:fs";
import { connect, type Socket } from "node:net";

/** Resolves when it is connected. Nobody there: rejects with ENOENT or ECONNREFUSED. */
export function openSocket(folder: string, name: string, limit = 2000): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    const socket = connect(`/proc/self/fd/${descriptor}/${name}`);
    const end = (error?: Error) => {
      clearTimeout(timer);
      closeSync(descriptor);
      socket.off("connect", end).off("error", end);
      // Whatever it says of itself later is no reason to end the service.
      socket.on("error", () => {});
      if (error === undefined) return resolve(socket);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => end(new Error(`${name} did not take the call in ${limit} ms`)), limit);
    socket.on("connect", () => end());
    socket.on("error", end);
  });
}

/** The socket is not there, or nobody holds it any more. */
export const isAbsent = (error: unknown): boolean =>
  ["ENOENT", "ECONNREFUSED"].includes((error as NodeJS.ErrnoException).code ?? "");
