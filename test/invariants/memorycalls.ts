/**
 * Thread of `memory.test.ts`: makes calls, and posts how many promises remain of 5,000 more calls. The search of all objects takes milliseconds
 * in a thread, whose heap is small, and seconds in a process that has run many test files.
 */
import { Writable } from "node:stream";
import { queryObjects } from "node:v8";
import { parentPort, workerData } from "node:worker_threads";
import { sinkOf } from "../../service/src/server/upload.ts";
import { createGuard } from "../../service/src/store/guard.ts";

/** What is called; the URL is that of a PostgreSQL database. */
export type Called = { readonly name: "upload" } | { readonly name: "database"; readonly url: string };

interface Subject {
  call(): Promise<unknown>;
  close(): Promise<unknown>;
}

async function open(called: Called): Promise<Subject> {
  if (called.name === "database") {
    const guard = await createGuard({ url: called.url, exclusive: false, log: () => {}, onLost: () => {} });
    return { call: () => guard.during(Promise.resolve()), close: () => guard.close() };
  }
  const sink = sinkOf(new Writable({ highWaterMark: 1, write: (_part, _encoding, done) => void setImmediate(done) }));
  return { call: () => sink.write(Buffer.of(1)), close: () => sink.end() };
}

const subject = await open(workerData as Called);
const countAfter = async (calls: number): Promise<number> => {
  for (let call = 0; call < calls; call++) await subject.call();
  return queryObjects(Promise, { format: "count" });
};
const before = await countAfter(1000);
parentPort?.postMessage((await countAfter(5000)) - before);
await subject.close();
