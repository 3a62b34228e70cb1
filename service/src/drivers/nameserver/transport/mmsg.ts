/**
 * Handles many datagrams per system call. Node receives and sends one at a time, which costs more than the response itself; recvmmsg(2) and
 * sendmmsg(2) share that cost. libc is called through koffi. The structs are in one buffer that never moves, with the layout of Linux on
 * little-endian 64-bit CPUs.
 */
import { endianness } from "node:os";
import { getSystemErrorName } from "node:util";
import ipaddr from "ipaddr.js";
import { type Family, isVersion6, networkAt } from "../../../base/address.ts";
import { type Client, isLoopback } from "../answer/ratelimit.ts";
import { hashEnd, hashOn } from "../builtin/table.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const SOL_SOCKET = 1;
/** Sets the size of the receive buffer without the limit of `net.core.rmem_max`; needs CAP_NET_ADMIN. */
const SO_RCVBUFFORCE = 33;
/** Nine numbers, in bytes: the first is the receive queue, the second the size of its buffer. */
const SO_MEMINFO = 55;

/** Bytes for datagrams of a burst; the kernel may allocate less. */
export const SOCKET_BUFFER = 4 << 20;

/** Maximum number of datagrams per call. More do not reduce the cost, and delay other work of the thread. */
export const PLACES = 32;
/** Maximum size of a datagram (RFC 768), and the distance of two buffers: one more cache line, so that they use different cache sets. */
export const DATAGRAM = 65_535;
const STRIDE = 65_600;

/** struct mmsghdr: msg_name 0, msg_namelen 8, msg_iov 16, msg_iovlen 24, msg_control 32, msg_controllen 40, msg_flags 48, msg_len 56. */
const HEADER = 64;
/** struct iovec: iov_base 0, iov_len 8. */
const VECTOR = 16;
/** Size of struct sockaddr_in6, and the same rounded up to 32. */
const ADDRESS = 28;
const NAME = 32;

const VECTORS = PLACES * HEADER;
const NAMES = VECTORS + PLACES * VECTOR;
const DATAGRAMS = NAMES + PLACES * NAME;

/** Memory of the datagrams that wait at a socket, and of its receive buffer, in bytes. */
export interface Queued {
  readonly waiting: number;
  readonly buffer: number;
}

/** Datagrams in places 0 to PLACES - 1, and their responses in the same places. */
export interface Batch {
  /** Receives the datagrams that the socket has now. Returns their number. */
  receive(): number;
  /** Returns the 65,535 bytes of a place: first the datagram, then its response. */
  packet(place: number): Buffer;
  /** Returns the size of the datagram in bytes. */
  size(place: number): number;
  /** Returns the sender: an IP address without zone; an IPv4 address in its own form, also on a socket for both families. */
  client(place: number): Client;
  /** Sets the size of the response in bytes. A place without a size sends none. */
  put(place: number, size: number): void;
  /** Returns what waits at the socket. */
  queued(): Queued;
  /** Sends the responses to the last datagrams. Those that the kernel does not accept are dropped. */
  send(): void;
}

/** `recvmmsg` and `sendmmsg` of libc. */
export interface Mmsg {
  /** Binds a new UDP socket to a numeric address and returns its descriptor. Throws system errors in the form of Node. */
  bind(host: string, port: number): number;
  /** Creates the buffers for one thread, and enlarges the receive buffer of the socket if it may. The caller closes the descriptor. */
  batch(fd: number): Batch;
}

/** Loads libc. Rejects with the reason if it cannot be called or its structs have another layout. */
export async function loadMmsg(): Promise<Mmsg> {
  if (process.platform !== "linux" || endianness() !== "LE" || !["x64", "arm64", "riscv64"].includes(process.arch))
    throw new Error(`not supported on ${process.platform} ${process.arch}`);
  const { default: koffi } = await import("koffi");
  const libc = koffi.load(null);
  const socket: (family: number, type: number, protocol: number) => number = libc.func("int socket(int, int, int)");
  const bind: (fd: number, name: Uint8Array, length: number) => number = libc.func("int bind(int, void *, uint)");
  // Node warns of a descriptor that it has not opened.
  const close: (fd: number) => number = libc.func("int close(int)");
  type Many = (fd: number, headers: Uint8Array, count: number, flags: number, timeout?: null) => number;
  const recvmmsg: Many = libc.func("int recvmmsg(int, void *, uint, int, void *)");
  const getsockopt: (fd: number, level: number, option: number, value: Uint32Array, length: Uint32Array) => number =
    libc.func("int getsockopt(int, int, int, void *, void *)");
  const setsockopt: (fd: number, level: number, option: number, value: Uint32Array, length: number) => number =
    libc.func("int setsockopt(int, int, int, void *, uint)");
  const sendmmsg: Many = libc.func("int sendmmsg(int, void *, uint, int)");

  const error = (syscall: string, host: string, port: number): Error => {
    const errno = -koffi.errno();
    const code = getSystemErrorName(errno);
    return Object.assign(new Error(`${syscall} ${code} ${host}:${port}`), {
      errno,
      code,
      syscall,
      address: host,
      port,
    });
  };

  return {
    bind(host, port) {
      const fd = socket(isVersion6(host) ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd < 0) throw error("socket", host, port);
      const name = sockaddr(host, port);
      if (bind(fd, name, name.length) === 0) return fd;
      const refusal = error("bind", host, port);
      close(fd);
      throw refusal;
    },

    batch(fd) {
      // Without the capability the buffer stays as the socket has it.
      setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, Uint32Array.of(SOCKET_BUFFER), Uint32Array.BYTES_PER_ELEMENT);
      const memory = new ArrayBuffer(DATAGRAMS + PLACES * STRIDE);
      const headers = new Uint8Array(memory, 0, VECTORS);
      const numbers = new Uint32Array(memory, 0, DATAGRAMS / 4);
      const pointers = new BigUint64Array(memory, 0, DATAGRAMS / 8);
      const start = koffi.address(headers);
      const nameLength = (place: number): number => (place * HEADER + 8) / 4;
      const length = (place: number): number => (VECTORS + place * VECTOR + 8) / 4;
      const packets: Buffer[] = [];
      const names: Buffer[] = [];
      for (let place = 0; place < PLACES; place++) {
        const [name, vector, packet] = [NAMES + place * NAME, VECTORS + place * VECTOR, DATAGRAMS + place * STRIDE];
        pointers[(place * HEADER) / 8] = start + BigInt(name);
        pointers[(place * HEADER + 16) / 8] = start + BigInt(vector);
        pointers[(place * HEADER + 24) / 8] = 1n;
        pointers[vector / 8] = start + BigInt(packet);
        names.push(Buffer.from(memory, name, NAME));
        packets.push(Buffer.from(memory, packet, DATAGRAM));
      }
      const clients = names.map(clientOf);
      const memoryInfo = new Uint32Array(9);
      let came = 0;

      return {
        receive() {
          for (let place = 0; place < PLACES; place++) {
            numbers[nameLength(place)] = ADDRESS;
            numbers[length(place)] = DATAGRAM;
          }
          came = Math.max(0, recvmmsg(fd, headers, PLACES, MSG_DONTWAIT, null));
          for (let place = 0; place < came; place++) numbers[length(place)] = 0;
          return came;
        },
        packet: (place) => packets[place] as Buffer,
        size: (place) => numbers[(place * HEADER + 56) / 4] as number,
        client: (place) => clients[place] as Client,
        put(place, size) {
          numbers[length(place)] = size;
        },
        queued() {
          const length = Uint32Array.of(memoryInfo.byteLength);
          const [waiting = 0, buffer = 0] =
            getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memoryInfo, length) === 0 ? memoryInfo : [];
          return { waiting, buffer };
        },
        send() {
          const answered = (place: number): boolean => place < came && numbers[length(place)] !== 0;
          for (let from = 0; from < came; from++) {
            let end = from;
            while (answered(end)) end++;
            // A call ends at the first one that the kernel does not accept; it is skipped.
            if (end > from)
              from += Math.max(0, sendmmsg(fd, headers.subarray(from * HEADER), end - from, MSG_DONTWAIT));
          }
        },
      };
    },
  };
}

/** Returns the struct sockaddr_in or sockaddr_in6 of a numeric address. */
function sockaddr(host: string, port: number): Buffer {
  const bytes = ipaddr.parse(host).toByteArray();
  const v6 = bytes.length === 16;
  const name = Buffer.alloc(v6 ? ADDRESS : 16);
  name.writeUInt16LE(v6 ? AF_INET6 : AF_INET, 0);
  name.writeUInt16BE(port, 2);
  name.set(bytes, v6 ? 8 : 4);
  return name;
}

/** Returns the client whose address is in a struct sockaddr_in or sockaddr_in6. */
function clientOf(name: Buffer): Client {
  const family = (): Family => (name.readUInt16LE(0) === AF_INET || isMapped(name) ? 4 : 6);
  const start = (): number => (name.readUInt16LE(0) === AF_INET ? 4 : isMapped(name) ? 20 : 8);
  return {
    address: () => addressOf(name),
    network: () => networkAt(name, start(), family()),
    flow: () => hashEnd(hashOn(0, name, 2, start() === 4 ? 8 : 24)),
    isLoopback: () => (family() === 4 ? name[start()] === 127 : isLoopback(addressOf(name))),
  };
}

const isMapped = (name: Buffer): boolean =>
  name.readUInt32LE(8) === 0 && name.readUInt32LE(12) === 0 && name.readUInt32BE(16) === 0xffff;

/** Returns the address in a struct sockaddr_in or sockaddr_in6 as text. */
export function addressOf(name: Buffer): string {
  if (name.readUInt16LE(0) === AF_INET) return dotted(name, 4);
  return isMapped(name) ? dotted(name, 20) : ipaddr.fromByteArray([...name.subarray(8, 24)]).toString();
}

function dotted(bytes: Buffer, at: number): string {
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
}
