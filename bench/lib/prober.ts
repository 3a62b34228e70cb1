/**
 * Requests `/healthz` and one DNS name every 10 ms, as a process of its own: `prober.ts API-URL DNS-PORT NAME`. It sends the waits since the
 * last message to its parent for each message that it receives. A wait counts from the time at which the request was due.
 */
import { createSocket } from "node:dgram";
import { Agent, request } from "node:http";

/** Milliseconds between two requests. */
const period = 10;
/** Most requests without a response; more would measure the prober. */
const mostOpen = 50;

/** Waits in milliseconds since the last report. */
export interface Waits {
  readonly http: readonly number[];
  readonly dns: readonly number[];
}

interface Probe {
  readonly waits: number[];
  readonly open: Map<number, number>;
}

if (import.meta.main) {
  const [url = "", port = "", name = ""] = process.argv.slice(2);
  const http: Probe = { waits: [], open: new Map() };
  const dns: Probe = { waits: [], open: new Map() };
  const end = ({ waits, open }: Probe, id: number): void => {
    const due = open.get(id);
    if (due === undefined) return;
    open.delete(id);
    waits.push(performance.now() - due);
  };
  const agent = new Agent({ keepAlive: true });
  const socket = createSocket("udp4");
  socket.on("message", (message) => end(dns, message.readUInt16BE(0)));
  const labels = name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  const question = Buffer.concat([...labels, Buffer.from([0, 0, 1, 0, 1])]);
  let id = 0;
  const send = (due: number): void => {
    id = (id + 1) % 65_536;
    const currentId = id;
    if (http.open.size < mostOpen) {
      http.open.set(currentId, due);
      const sent = request(`${url}/healthz`, { agent }, (response) =>
        response.resume().on("end", () => end(http, currentId)),
      );
      sent.on("error", () => end(http, currentId)).end();
    }
    if (dns.open.size < mostOpen) {
      dns.open.set(currentId, due);
      const head = Buffer.from([currentId >> 8, currentId & 255, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
      socket.send(Buffer.concat([head, question]), Number(port), "127.0.0.1");
    }
  };
  let due = performance.now();
  setInterval(() => {
    const now = performance.now();
    // A late timer delays the request itself, which is not a wait for the service.
    for (; due <= now; due += period) send(now);
  }, period);

  const take = ({ waits, open }: Probe) => {
    const now = performance.now();
    return [...waits.splice(0), ...[...open.values()].map((since) => now - since)];
  };
  process.on("message", () => process.send?.({ http: take(http), dns: take(dns) } satisfies Waits));
  process.on("disconnect", () => process.exit());
}
