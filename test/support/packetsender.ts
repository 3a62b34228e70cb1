/**
 * Sends the first packet of each connection that a line of standard input lists as JSON, from the addresses and ports in that list. Prints a line
 * when all are sent.
 */
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";

async function udp(packet: Packet): Promise<void> {
  const socket = createSocket(packet.source.includes(":") ? "udp6" : "udp4");
  socket.on("error", () => {});
  socket.bind(packet.sourcePort, packet.source);
  await once(socket, "listening");
  await new Promise<void>((resolve) =>
    socket.send("brume", packet.destinationPort, packet.destination, () => resolve()),
  );
  socket.close();
}

/** Ends before the first retransmission, which would be counted again. */
const CONNECT_TIMEOUT = 300;

function tcp(packet: Packet): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({
      host: packet.destination,
      port: packet.destinationPort,
      localAddress: packet.source,
      localPort: packet.sourcePort,
    });
    const end = () => {
      socket.destroy();
      resolve();
    };
    socket.on("error", end).on("connect", end);
    setTimeout(end, CONNECT_TIMEOUT);
  });
}

async function ping(packet: Packet): Promise<void> {
  const child = spawn("ping", ["-n", "-c", "1", "-W", "0.3", "-I", packet.source, packet.destination], {
    stdio: "ignore",
  });
  await once(child, "close");
}

for await (const line of createInterface({ input: process.stdin })) {
  await Promise.all(
    (JSON.parse(line) as Packet[]).map((packet) =>
      packet.protocol === 17 ? udp(packet) : packet.protocol === 6 ? tcp(packet) : ping(packet),
    ),
  );
  console.log("sent");
}
process.exit();
