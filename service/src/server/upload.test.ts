import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { queryObjects } from "node:v8";
import { sinkOf } from "./upload.ts";

test("written parts leave nothing in memory while the stream is open", async () => {
  const sink = sinkOf(new Writable({ highWaterMark: 1, write: (_part, _encoding, done) => void setImmediate(done) }));
  const countAfter = async (parts: number): Promise<number> => {
    for (let part = 0; part < parts; part++) await sink.write(Buffer.of(1));
    return queryObjects(Promise, { format: "count" });
  };
  const before = await countAfter(1000);
  const grown = (await countAfter(5000)) - before;
  assert.ok(grown < 500, `${grown} promises remain`);
  await sink.end();
});

test("a write to a stream that is closed meanwhile is rejected", async () => {
  const stream = new Writable({ highWaterMark: 1, write: () => {} });
  const sink = sinkOf(stream);
  const writing = sink.write(Buffer.of(1));
  stream.destroy();
  await assert.rejects(writing, /the stream to the host was closed/);
  await assert.rejects(sink.write(Buffer.of(1)), /the stream to the host was closed/);
});
