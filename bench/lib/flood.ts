/** Sends packets that each start a new connection, and prints the nanoseconds that the kernel needs for one. `flood.ts ADDRESS COUNT`. */
import { createSocket } from "node:dgram";

const [address = "", count = "0"] = process.argv.slice(2);
const socket = createSocket("udp4");
const send = (port: number) => new Promise<void>((resolve) => socket.send("x", port, address, () => resolve()));
const round = async (packets: number) => {
  const begun = process.hrtime.bigint();
  for (let sent = 0; sent < packets; sent += 50)
    await Promise.all(Array.from({ length: 50 }, (_, index) => send(1 + ((sent + index) % 60_000))));
  return Number(process.hrtime.bigint() - begun) / packets;
};
await round(5000);
console.log(Math.min(await round(Number(count)), await round(Number(count)), await round(Number(count))));
socket.close();
