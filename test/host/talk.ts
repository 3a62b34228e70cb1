/**
 * A program for tests that is one end of connections, run inside a namespace. `echo PORT` echoes its input, `say HOST PORT` sends each
 * line of its input and prints the replies, `sink PORT` prints the rate of a transfer, `pour HOST PORT SECONDS` sends as fast as
 * possible, `strew SECONDS HOST…` opens connections to all in turn and prints their number, `lease MAC` gets an address by DHCP and
 * prints the lease.
 */
import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";

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
  case "say": {
    const socket = connect(Number(args[1]), args[0], () => console.log("connected"));
    socket.on("error", () => {}).pipe(process.stdout);
    process.stdin.pipe(socket);
    break;
  }
  case "sink":
    createServer((socket) => {
      // The burst of the token bucket distorts the first half second.
      let [from, bytes, last] = [0, 0, 0];
      const start = performance.now();
      socket
        .on("error", () => {})
        .on("data", (chunk) => {
          last = performance.now();
          if (from > 0) bytes += chunk.length;
          // A full chunk means that more data has accumulated while this process could not run; it arrived before.
          else if (last - start > (chunk.length < 65_536 ? 500 : 1000)) from = last;
        });
      socket.on("close", () => console.log(`rate ${(bytes * 8) / (last - from) / 1000}`));
    }).listen(Number(args[0]), () => console.log("ready"));
    break;
  case "pour": {
    const socket = connect(Number(args[1]), args[0]);
    const block = Buffer.alloc(65_536);
    const pour = () => {
      while (socket.write(block));
    };
    socket
      .on("connect", pour)
      .on("drain", pour)
      .on("error", () => {});
    setTimeout(() => process.exit(), Number(args[2]) * 1000);
    break;
  }
  case "strew": {
    const [seconds, ...hosts] = args;
    const socket = createSocket("udp4");
    const end = performance.now() + Number(seconds) * 1000;
    let sent = 0;
    const send = (host: string) =>
      new Promise<void>((resolve) => socket.send("x", 1 + (sent++ % 60_000), host, () => resolve()));
    while (performance.now() < end)
      await Promise.all(
        Array.from({ length: 20 }, () => hosts)
          .flat()
          .map(send),
      );
    console.log(sent);
    socket.close();
    break;
  }
  case "lease": {
    const socket = createSocket({ type: "udp4", reuseAddr: true });
    const ask = (type: number, more?: readonly number[]) =>
      socket.send(dhcp(args[0] ?? "", type, more), 67, "255.255.255.255");
    socket.on("message", (packet) => {
      const address = packet.subarray(16, 20);
      const given = options(packet);
      const server = (given["54"] ?? "").split(".").map(Number);
      if (given["53"] !== String(acknowledged)) return ask(request, [50, 4, ...address, 54, 4, ...server]);
      console.log(JSON.stringify({ address: [...address].join("."), options: given }));
      process.exit();
    });
    socket.bind(68, "0.0.0.0", () => {
      socket.setBroadcast(true);
      ask(discover);
      setInterval(ask, 500, discover);
    });
    setTimeout(() => process.exit(1), 8000);
    break;
  }
  default:
    throw new Error(`unknown mode ${mode}`);
}
