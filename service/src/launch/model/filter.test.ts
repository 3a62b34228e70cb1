/** The system-call filter, run by an interpreter of its instructions. The kernel runs it in test/host/processes.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildFilter, refusedCalls } from "./filter.ts";

const x86_64 = 0xc000003e;
const allow = 0x7fff0000;
const eperm = 0x00050001;

interface Call {
  readonly call: number;
  readonly architecture?: number;
  readonly arguments?: readonly number[];
}

/** Runs the program as the kernel does. Throws for an instruction that it does not know, and for a jump beyond the end. */
function decide(program: Buffer, { call, architecture = x86_64, arguments: values = [] }: Call): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call >>> 0, 0);
  data.writeUInt32LE(architecture >>> 0, 4);
  values.forEach((value, index) => data.writeUInt32LE(value >>> 0, 16 + index * 8));
  let accumulator = 0;
  for (let at = 0; ; at++) {
    const operation = program.readUInt16LE(at * 8);
    const [yes, no] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)];
    const value = program.readUInt32LE(at * 8 + 4);
    if (operation === 0x06) return value;
    if (operation === 0x20) accumulator = data.readUInt32LE(value);
    else if (operation === 0x15) at += accumulator === value ? yes : no;
    else if (operation === 0x35) at += accumulator >= value ? yes : no;
    else if (operation === 0x45) at += (accumulator & value) === 0 ? no : yes;
    else throw new Error(`instruction ${operation}`);
  }
}

const program = buildFilter(refusedCalls);

test("every listed call is refused, and every other one is allowed", () => {
  const numbers = new Set<number>(Object.values(refusedCalls));
  assert.equal(numbers.size, Object.keys(refusedCalls).length);
  for (let call = 0; call < 500; call++)
    if (call !== 435)
      assert.equal(decide(program, { call, arguments: [2, 0] }), numbers.has(call) ? eperm : allow, `${call}`);
});

test("clone makes threads and no namespaces; libc uses it instead of clone3", () => {
  assert.equal(decide(program, { call: 435 }), 0x00050026);
  assert.equal(decide(program, { call: 56, arguments: [0x003d0f00] }), allow);
  for (const flag of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
    assert.equal(decide(program, { call: 56, arguments: [0x003d0f00 | flag] }), eperm, flag.toString(16));
});

test("sockets are of IP, Unix, and netlink for the addresses of the host", () => {
  const allowed = Array.from({ length: 46 }, (_, family) => family).filter(
    (family) => decide(program, { call: 41, arguments: [family, 2] }) === allow,
  );
  assert.deepEqual(allowed, [1, 2, 10, 16]);
});

test("no input is written into a terminal", () => {
  for (const request of [0x5412, 0x541c]) assert.equal(decide(program, { call: 16, arguments: [0, request] }), eperm);
  assert.equal(decide(program, { call: 16, arguments: [0, 0x5401] }), allow);
});

test("calls of other architectures end the process", () => {
  assert.equal(decide(program, { call: 59, architecture: 0x40000003 }), 0x80000000);
  assert.equal(decide(program, { call: 0x40000000 + 59 }), 0x80000000);
});
