/**
 * Sends DNS queries at a fixed rate without waiting for responses: `dnssend.ts PORT RATE SECONDS missing|existing DOMAINS NAMES`. Prints the
 * number of queries that the kernel accepted. It sends 64 datagrams with one system call, so that it leaves the processor to the server.
 */
import koffi from "koffi";
import { query } from "../../test/support/dnsclient.ts";

const [port = "0", rate = "0", seconds = "0", kind = "missing", domains = "1", names = "1"] = process.argv.slice(2);
const libc = koffi.load(null);
const socket: (family: number, type: number, protocol: number) => number = libc.func("int socket(int, int, int)");
const connect: (fd: number, name: Uint8Array, length: number) => number = libc.func("int connect(int, void *, uint)");
const sendmmsg: (fd: number, headers: Uint8Array, count: number, flags: number) => number = libc.func(
  "int sendmmsg(int, void *, uint, int)",
);

const COUNT = 64;
const SPACE = 64;
const MSG_DONTWAIT = 0x40;
/** struct mmsghdr (64 bytes), struct iovec (16 bytes), packets. */
const memory = new ArrayBuffer(COUNT * (64 + 16 + SPACE));
const headers = new Uint8Array(memory, 0, COUNT * 64);
const pointers = new BigUint64Array(memory);
const packets = Buffer.from(memory, COUNT * 80);
const start = koffi.address(headers);
for (let i = 0; i < COUNT; i++) {
  pointers[(i * 64 + 16) / 8] = start + BigInt(COUNT * 64 + i * 16);
  pointers[(i * 64 + 24) / 8] = 1n;
  pointers[(COUNT * 64 + i * 16) / 8] = start + BigInt(COUNT * 80 + i * SPACE);
}

const fds = Array.from({ length: 16 }, () => {
  const fd = socket(2, 2, 0);
  const name = Buffer.from([2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  name.writeUInt16BE(Number(port), 2);
  connect(fd, name, name.length);
  return fd;
});

let next = 0;
let sent = 0;
let missed = 0;
function fill(): void {
  for (let i = 0; i < COUNT; i++, next++) {
    const label =
      kind === "missing" ? `x${Math.random().toString(36).slice(2, 10)}` : `h${(next * 7919) % Number(names)}`;
    const packet = query(`${label}.zone-${next % Number(domains)}.example`, 1);
    packet.copy(packets, i * SPACE);
    pointers[(COUNT * 64 + i * 16 + 8) / 8] = BigInt(packet.length);
  }
}

const begun = performance.now();
const prepared: Buffer[] = [];
const lengths: BigUint64Array[] = [];
// Composed in advance, so that sending costs as little as possible.
for (let i = 0; i < 2000; i++) {
  fill();
  prepared.push(Buffer.from(packets));
  lengths.push(BigUint64Array.from({ length: COUNT }, (_, j) => pointers[(COUNT * 64 + j * 16 + 8) / 8] ?? 0n));
}
const from = performance.now();
console.error(`prepared in ${Math.round(from - begun)} ms`);
const tick = (): void => {
  const now = performance.now();
  if (now - from > Number(seconds) * 1000) {
    console.log(sent);
    process.exit();
  }
  const due = ((now - from) / 1000) * Number(rate);
  // After a pause of the process, at most 20 ms of queries are sent late.
  missed += Math.max(0, due - missed - sent - Number(rate) / 50);
  while (sent < due - missed) {
    const turn = ((sent / COUNT) % prepared.length) | 0;
    prepared[turn]?.copy(packets);
    for (let j = 0; j < COUNT; j++) pointers[(COUNT * 64 + j * 16 + 8) / 8] = lengths[turn]?.[j] ?? 0n;
    const accepted = Math.max(0, sendmmsg(fds[turn % fds.length] ?? 0, headers, COUNT, MSG_DONTWAIT));
    sent += accepted;
    // A full buffer: what the kernel refused is not sent later.
    missed += COUNT - accepted;
  }
  setTimeout(tick, 1);
};
tick();
