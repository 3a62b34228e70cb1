/**
 * Loaded into the service with `--import`: appends each turn of an event loop that takes more than 10 ms of processor time to the file
 * `TURNS`, as a line of the thread's id, its end in ms since 1970, and its processor time in ms. Unlike the wait of a request, it does not
 * depend on other programs of the host.
 */
import { appendFileSync } from "node:fs";
import { threadId } from "node:worker_threads";

/** Milliseconds between two readings of the processor time of the thread. */
const period = 5;
const shortest = 10;

const spent = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

const file = process.env["TURNS"];
let before = spent();
if (file !== undefined)
  setInterval(() => {
    const now = spent();
    const took = now - before;
    before = now;
    if (took > shortest) appendFileSync(file, `${threadId} ${Date.now()} ${took.toFixed(1)}\n`);
  }, period).unref();
