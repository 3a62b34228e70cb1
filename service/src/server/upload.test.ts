import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { sinkOf } from "./upload.ts";

test("a write to a stream that is closed meanwhile is rejected", async () => {
  const stream = new Writable({ highWaterMark: 1, write: () => {} });
  const sink = sinkOf(stream);
  const writing = sink.write(Buffer.of(1));
  stream.destroy();
  await assert.rejects(writing, /the stream to the host was closed/);
  await assert.rejects(sink.write(Buffer.of(1)), /the stream to the host was closed/);
});
