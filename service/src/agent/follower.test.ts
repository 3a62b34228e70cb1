/** The follower of an agent's events over simulated streams: what it repeats after a loss. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { silentLog } from "../base/log.ts";
import type { MachinesStatus } from "../drivers/machine/interface.ts";
import { AgentError } from "./error.ts";
import { createFollower } from "./follower.ts";
import type { Transport } from "./transport.ts";

const epochs = { first: "0".repeat(8), second: "1".repeat(8) };

/** Streams of an agent: each request gets the next start, and lasts until `lose` is called. */
function createStreams(starts: readonly { readonly epoch: string; readonly isComplete: boolean }[]) {
  const left = [...starts];
  let lose = (): void => {};
  const transport: Transport = {
    async send({ onLine, signal }) {
      const start = left.shift();
      const lost = new AbortController();
      lose = () => lost.abort();
      if (start !== undefined) onLine?.(JSON.stringify({ ...start, last: 0 }));
      await once(AbortSignal.any([lost.signal, signal ?? lost.signal]), "abort");
      throw new AgentError("away", "the stream has ended");
    },
    open: () => Promise.reject(new Error("not used")),
    reset() {},
  };
  return { transport, lose: () => lose() };
}
const restart = [
  { epoch: epochs.first, isComplete: true },
  { epoch: epochs.second, isComplete: false },
];

test("what fails after a restart of the agent is repeated while the stream lasts", async () => {
  const { transport, lose } = createStreams(restart);
  const calls: string[] = [];
  const complete = Promise.withResolvers<void>();
  const call = (name: string): void => {
    calls.push(name);
    if (calls.filter((one) => one === name).length === 1) throw new Error("once");
    if (calls.length === 4) complete.resolve();
  };
  const follower = createFollower({
    transport,
    headers: () => ({}),
    log: silentLog,
    async observe(): Promise<MachinesStatus> {
      call("observe");
      return { ready: true, detail: "", machines: [] } as unknown as MachinesStatus;
    },
    returned: async (isNew) => call(`returned ${isNew}`),
  });
  await follower.start();
  lose();
  await complete.promise;
  assert.deepEqual(calls, ["observe", "returned true", "observe", "returned true"]);
  follower.close();
});

test("a restart of the agent is not forgotten if the stream is lost again before it was handled", async () => {
  const { transport, lose } = createStreams([...restart, { epoch: epochs.second, isComplete: true }]);
  const handled: boolean[] = [];
  const complete = Promise.withResolvers<void>();
  let observations = 0;
  const follower = createFollower({
    transport,
    headers: () => ({}),
    log: silentLog,
    async observe(): Promise<MachinesStatus> {
      observations++;
      if (observations === 1) throw new Error("once");
      return { ready: true, detail: "", machines: [] } as unknown as MachinesStatus;
    },
    async returned(isNew) {
      handled.push(isNew);
      if (handled.length === 2) return complete.resolve();
      lose();
      throw new AgentError("away", "the stream has ended");
    },
  });
  await follower.start();
  lose();
  await complete.promise;
  assert.deepEqual([handled, observations], [[true, true], 2]);
  follower.close();
});
