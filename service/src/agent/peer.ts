/**
 * Identity of the process at the other end of a Unix socket (SO_PEERCRED of unix(7)). Node has no call for it, so libc is called through
 * koffi, which is optional. Where it is missing, the mode of the socket and of its folder are the only check.
 */

import type { Socket } from "node:net";
import { endianness } from "node:os";

/** Credentials of a process when it connected. */
export interface Peer {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
/** struct ucred: pid, uid, gid, 32 bits each. */
const ucredBytes = 12;

/** Returns a function that reads the credentials of a connection's other end. Rejects with the reason where that is not possible. */
export async function loadPeer(): Promise<(socket: Socket) => Peer> {
  if (process.platform !== "linux" || endianness() !== "LE" || !["x64", "arm64", "riscv64"].includes(process.arch))
    throw new Error(`SO_PEERCRED is not known on ${process.platform} ${process.arch}`);
  const { default: koffi } = await import("koffi");
  const getsockopt: (fd: number, level: number, name: number, value: Uint8Array, length: Uint8Array) => number = koffi
    .load(null)
    .func("int getsockopt(int, int, int, void *, void *)");
  return (socket) => {
    // Node has no public property for the descriptor.
    const handle = Reflect.get(socket, "_handle") as { readonly fd?: number } | null | undefined;
    const fd = handle?.fd ?? -1;
    const value = Buffer.alloc(ucredBytes);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(ucredBytes);
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, value, length) !== 0)
      throw new Error("the identity of the process at the socket could not be read");
    return { pid: value.readInt32LE(0), uid: value.readUInt32LE(4), gid: value.readUInt32LE(8) };
  };
}
