/**
 * A program for tests that is one end of connections in a namespace. Its first argument is the mode:
 * - `echo PORT` returns its input.
 * - `send HOST PORT` sends each line of its input and prints the replies.
 * - `sink PORT` receives. For each line, a number of bytes, it prints their number when it has received them.
 * - `source HOST PORT` sends the number of bytes in each line, until the line `end`.
 * - `datagrams HOST…` sends UDP datagrams from one port to all hosts in turn until its first input, and prints their number.
 * - `lease MAC` gets an address by DHCP and prints the lease.
 */
import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";

const [mode, ...args] = process.argv.slice(2);

const [discover, request, acknowledged] = [1, 3, 5];

/** A DHCP message (RFC 2131 section 2), with the broadcast bit, because the client has no address yet. */
function dhcp(mac: string, type: number, more: readonly number[] = []): Buffer {
  const packet = Buffer.alloc(300);
  packet.set([1, 1, 6, 0], 0);
  packet.writeUInt32BE(0x62727565, 4);
  packet.writeUInt16BE(0x8000, 10);
  packet.set(Buffer.from(mac.replaceAll(":", ""), "hex"), 28);
  packet.writeUInt32BE(0x63825363, 236);
  // Requests mask, router, DNS, name and MTU.
  packet.set([53, 1, type, 55, 5, 1, 3, 6, 12, 26, ...more, 255], 240);
  return packet;
}

function options(packet: Buffer): Record<string, string> {
  const found: Record<string, string> = {};
  const dotted = (bytes: Buffer) => [...bytes].join(".");
  for (let at = 240; packet[at] !== 255 && at < packet.length; at += 2 + (packet[at + 1] ?? 0)) {
    const value = packet.subarray(at + 2, at + 2 + (packet[at + 1] ?? 0));
    const code = packet[at] ?? 0;
    found[code] = code === 12 ? value.toString() : code === 26 ? String(value.readUInt16BE()) : dotted(value);
  }
  return found;
}

switch (mode) {
  case "echo":
    createServer((socket) => socket.on("error", () => {}).pipe(socket)).listen(Number(args[0]), () =>
      console.log("ready"),
    );
    break;
  case "send": {
    const socket = connect(Number(args[1]), args[0], () => console.log("connected"));
    socket.on("error", () => {}).pipe(process.stdout);
    process.stdin.pipe(socket);
    break;
  }
  case "sink": {
    let received = 0;
    const expected: number[] = [];
    const report = () => {
      for (; received >= (expected[0] ?? Infinity); expected.shift()) console.log(received);
    };
    createInterface({ input: process.stdin }).on("line", (line) => {
      expected.push(Number(line));
      report();
    });
    createServer((socket) =>
      socket
        .on("error", () => {})
        .on("data", (chunk) => {
          received += chunk.length;
          report();
        })
        .on("close", () => console.log("closed")),
    ).listen(Number(args[0]), () => console.log("ready"));
    break;
  }
  case "source": {
    const socket = connect(Number(args[1]), args[0], () => console.log("connected"));
    const block = Buffer.alloc(65_536);
    const blocks = async function* (): AsyncGenerator<Buffer> {
      for await (const line of createInterface({ input: process.stdin })) {
        if (line === "end") return;
        for (let left = Number(line); left > 0; left -= block.length) yield block.subarray(0, left);
      }
    };
    socket.on("close", () => {
      console.log("closed");
      process.exit();
    });
    await pipeline(blocks, socket);
    break;
  }
  case "datagrams": {
    const socket = createSocket("udp4");
    let [sent, ending] = [0, false];
    process.stdin.once("data", () => {
      ending = true;
    });
    // To few ports: each becomes an element of sets, which make every later listing of the tables slow.
    const send = (host: string) =>
      new Promise<void>((resolve) => socket.send("x", 1 + (sent++ % 2000), host, () => resolve()));
    // The pauses let the kernel process its queue, which drops packets when it is full.
    for (; !ending; await sleep(1))
      await Promise.all(
        Array.from({ length: 20 }, () => args)
          .flat()
          .map(send),
      );
    console.log(sent);
    process.exit();
  }
  case "lease": {
    const socket = createSocket({ type: "udp4", reuseAddr: true });
    const sendRequest = (type: number, more?: readonly number[]) =>
      socket.send(dhcp(args[0] ?? "", type, more), 67, "255.255.255.255");
    socket.on("message", (packet) => {
      const address = packet.subarray(16, 20);
      const given = options(packet);
      const server = (given["54"] ?? "").split(".").map(Number);
      if (given["53"] !== String(acknowledged)) return sendRequest(request, [50, 4, ...address, 54, 4, ...server]);
      console.log(JSON.stringify({ address: [...address].join("."), options: given }));
      process.exit();
    });
    socket.bind(68, "0.0.0.0", () => {
      socket.setBroadcast(true);
      sendRequest(discover);
      setInterval(sendRequest, 500, discover);
    });
    setTimeout(() => process.exit(1), 50_000);
    break;
  }
  default:
    throw new Error(`unknown mode ${mode}`);
}
