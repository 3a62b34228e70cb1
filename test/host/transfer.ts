/**
 * Transfers over TCP against token buckets, independent of the speed of the host. A bucket allows at most its rate times the elapsed time
 * and its burst. The clock is read before the first byte leaves and after the last byte is received, so a process that is not scheduled
 * only raises the allowance. That the bucket limits, and its rate, are read from the kernel.
 */
import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import type { Lab } from "../support/netnslab.ts";
import { startEndpoint } from "./spaceprocess.ts";

/** Payload of a full TCP segment with timestamps at MTU 1500, and bytes of its frame: no frame carries more payload. */
const [segment, frame] = [1448, 1514];
/** The kernel rounds the duration of a packet and the burst to its own units. */
const rounding = 1.001;

export interface Transfer {
  /** Sends so many more bytes as fast as possible; resolves to their number when all are received. */
  send(bytes: number): Promise<number>;
  /** Closes the connection after all bytes are received, so that no late packet disturbs another test. */
  end(): Promise<void>;
}

/** Opens a connection for a transfer. */
export async function startTransfer(from: string, to: string, address: string): Promise<Transfer> {
  const sink = startEndpoint(to, "sink", "5201");
  assert.equal(await sink.line(), "ready");
  const source = startEndpoint(from, "source", address, "5201");
  assert.equal(await source.line(), "connected");
  let total = 0;
  return {
    async send(bytes) {
      total += bytes;
      sink.send(String(total));
      source.send(String(bytes));
      assert.equal(Number(await sink.line()), total);
      return bytes;
    },
    async end() {
      source.send("end");
      assert.equal(await source.line(), "closed");
      assert.equal(await sink.line(), "closed");
      sink.end();
    },
  };
}

/** A token bucket as the kernel reports it: rate in Mbit/s, size in bytes, and its counters. */
export interface Bucket {
  readonly rate: number;
  readonly burst: number;
  readonly bytes: number;
  /** How often a packet had to wait for tokens. */
  readonly waits: number;
}

/** Returns the token buckets of the namespace by device. */
export async function bucketsOf(lab: Lab, space: string): Promise<ReadonlyMap<string, Bucket>> {
  const rows = JSON.parse(await lab.run(space, ["tc", "-s", "-j", "qdisc", "show"])) as {
    kind: string;
    dev: string;
    options: { rate: number; burst: number };
    bytes: number;
    overlimits: number;
  }[];
  return new Map(
    rows
      .filter(({ kind }) => kind === "tbf")
      .map(({ dev, options: { rate, burst }, bytes, overlimits }) => [
        dev,
        { rate: (rate * 8) / 1e6, burst, bytes, waits: overlimits },
      ]),
  );
}

/** Asserts that `action` transfers through the bucket of the device, which has this rate and delays packets. */
export async function passes(
  bucket: () => Promise<Bucket | undefined>,
  rate: number,
  action: () => Promise<number>,
): Promise<void> {
  const before = await bucket();
  assert.equal(before?.rate, rate);
  const start = performance.now();
  const wire = (await action()) * (frame / segment);
  const allowed = (rate / 8) * 1e3 * (performance.now() - start) * rounding + before.burst * rounding;
  const after = await bucket();
  assert.equal(after?.rate, rate);
  assert.ok(wire <= allowed, `${Math.round(wire)} bytes, the bucket allows ${Math.round(allowed)}`);
  assert.ok(after.bytes - before.bytes >= wire, "all packets pass the bucket");
  assert.ok(after.waits > before.waits, "packets wait for tokens");
}
