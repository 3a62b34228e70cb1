import assert from "node:assert/strict";
import { test } from "node:test";
import type { Image } from "./catalog.ts";
import { examples } from "./examples.ts";
import { ConnectionError } from "./transport.ts";
import { type UploadCalls, uploadFile } from "./upload.ts";

/** A service that receives an upload of `Size` bytes. `lose` responses to parts are lost. */
function createService(Size: number, lose = 0) {
  const example = examples.readImage?.answer;
  assert.ok(example);
  const parts: Uint8Array[] = [];
  const received = () => Buffer.concat(parts);
  const image = (): Image => {
    const { length: Received } = received();
    const upload = { Size, Received, Sha256: null, Expires: "2026-01-01T00:00:00Z" };
    return { ...example, Upload: Received < Size ? upload : null };
  };
  const calls: UploadCalls = {
    create: async () => image(),
    read: async () => image(),
    async write(_id, content) {
      parts.push(content as Uint8Array);
      if (parts.length <= lose) throw new ConnectionError("lost");
      return image();
    },
    now: () => 0,
    pause: async () => {},
  };
  return { calls, received };
}

type Chunks = readonly ArrayLike<number>[];

/** A stream of chunks. `ended` is true once it has ended or was closed. */
function createStream(chunks: Chunks) {
  const state = { ended: false };
  async function* read() {
    try {
      for (const chunk of chunks) yield Uint8Array.from(chunk);
    } finally {
      state.ended = true;
    }
  }
  return { source: read(), state };
}

test("a stream of exactly Size bytes is uploaded, also if a response is lost", async () => {
  for (const lose of [0, 1]) {
    const { calls, received } = createService(3, lose);
    const { source, state } = createStream([[1], [], [2, 3], []]);
    assert.equal((await uploadFile(calls, { Name: "a", Size: 3 }, source)).Upload, null);
    assert.deepEqual([[...received()], state.ended], [[1, 2, 3], true]);
  }
});

test("a stream of another length than Size is an error, and the image still waits for content", async () => {
  const upload = async (chunks: Chunks) => {
    const { calls, received } = createService(2);
    const { source, state } = createStream(chunks);
    const sent = uploadFile(calls, { Name: "a", Size: 2 }, source);
    const message = await sent.then(
      () => "uploaded",
      (error: unknown) => (error as Error).message,
    );
    assert.ok(received().length < 2 && state.ended, message);
    return message;
  };
  assert.equal(await upload([[1], [2], [3]]), "the stream has more than 2 bytes");
  assert.equal(await upload([[1], [2, 3]]), "the stream has more than 2 bytes");
  assert.equal(await upload([[1], [2], [], [3]]), "the stream has more than 2 bytes");
  assert.equal(await upload([[1]]), "the stream ended after 1 bytes");
});

test("a canceled upload closes its stream", async () => {
  const { calls } = createService(2 << 20);
  const chunk = new Uint8Array(1 << 20);
  const { source, state } = createStream([chunk, chunk]);
  const controller = new AbortController();
  const onProgress = ({ Upload }: Image): void => {
    if ((Upload?.Received ?? 0) > 0) controller.abort();
  };
  const sent = uploadFile(calls, { Name: "a", Size: 2 << 20 }, source, { signal: controller.signal, onProgress });
  await assert.rejects(sent, { name: "AbortError" });
  assert.equal(state.ended, true);
});

test("a canceled upload does not wait for the next chunk of its stream", async () => {
  const { calls } = createService(2);
  const controller = new AbortController();
  async function* read(): AsyncGenerator<Uint8Array> {
    yield Uint8Array.of(1);
    controller.abort();
    await new Promise(() => {});
  }
  await assert.rejects(uploadFile(calls, { Name: "a", Size: 2 }, read(), { signal: controller.signal }), {
    name: "AbortError",
  });
});
