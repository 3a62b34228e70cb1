/**
 * A DNS client for tests. It builds queries byte by byte and reads responses with dns-packet, which shares no code with Brume.
 */
import { createSocket } from "node:dgram";
import { createRequire } from "node:module";
import { isIPv6 } from "node:net";

interface Packet {
  readonly id: number;
  readonly rcode: string;
  readonly flag_aa: boolean;
  readonly flag_tc: boolean;
  readonly questions: readonly { readonly name: string; readonly type: string }[];
  readonly answers: readonly Decoded[];
  readonly authorities: readonly Decoded[];
  readonly additionals: readonly Decoded[];
}

export interface Decoded {
  readonly name: string;
  readonly type: string;
  readonly ttl: number;
  readonly data: unknown;
}

const codec = createRequire(import.meta.url)("dns-packet") as { decode(bytes: Uint8Array): Packet };

export const decode = (bytes: Uint8Array): Packet => codec.decode(bytes);

export interface Options {
  readonly id?: number;
  readonly flags?: number;
  readonly class?: number;
  /** Payload size of an OPT record, 0 for none. */
  readonly edns?: number;
  readonly dnssec?: boolean;
  readonly version?: number;
}

/** Returns a query for a dotted name (`\DDD` for special bytes) and a type number. */
export function query(name: string, type: number, options: Options = {}): Buffer {
  const { id = 0x1234, flags = 0, edns = 1232, dnssec = false, version = 0 } = options;
  const labels = name === "" ? [] : name.replace(/\.$/, "").split(".");
  const wire = labels.map((label) => {
    const bytes = Buffer.from(
      label.replace(/\\(\d{3})/g, (_, code) => String.fromCharCode(Number(code))),
      "latin1",
    );
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  });
  const header = Buffer.alloc(12);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(flags, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(edns > 0 ? 1 : 0, 10);
  const tail = Buffer.alloc(5);
  tail.writeUInt16BE(type, 1);
  tail.writeUInt16BE(options.class ?? 1, 3);
  const opt = Buffer.from([0, 0, 41, edns >> 8, edns & 0xff, 0, version, dnssec ? 0x80 : 0, 0, 0, 0]);
  return Buffer.concat([header, ...wire, tail, ...(edns > 0 ? [opt] : [])]);
}

export interface DnsClient {
  /** Sends a packet with a message id of the client. Resolves to the response, or to null after the timeout. */
  exchange(packet: Uint8Array, timeoutMs?: number): Promise<Buffer | null>;
  close(): void;
}

/** Creates a UDP client of one server, by default at any address of the host. Queries may run concurrently. */
export async function openDnsClient(address: string, localAddress?: string): Promise<DnsClient> {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/[[\]]/g, "");
  const port = Number(address.slice(at + 1));
  const waiting = new Map<number, (answer: Buffer) => void>();
  let lastId = 0;
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  if (localAddress !== undefined) await new Promise<void>((resolve) => socket.bind(0, localAddress, resolve));
  await new Promise<void>((resolve) => socket.connect(port, host, resolve));
  socket.on("message", (answer) => answer.length >= 2 && waiting.get(answer.readUInt16BE(0))?.(answer));
  socket.on("error", () => {});
  return {
    exchange(packet, timeoutMs = 60_000) {
      const bytes = Buffer.from(packet);
      lastId = (lastId + 1) & 0xffff;
      const id = lastId;
      if (bytes.length >= 2) bytes.writeUInt16BE(id, 0);
      return new Promise((resolve) => {
        const settle = (answer: Buffer | null): void => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve(answer);
        };
        const timer = setTimeout(settle, timeoutMs, null);
        waiting.set(id, settle);
        socket.send(bytes);
      });
    },
    close: () => socket.close(),
  };
}

/** Splits `host:port` of a server into the arguments of dig and kdig. */
export function target(address: string): { host: string; port: string } {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at).replace(/[[\]]/g, ""), port: address.slice(at + 1) };
}
