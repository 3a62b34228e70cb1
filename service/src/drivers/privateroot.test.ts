import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { exec } from "./exec.ts";
import { findNeeds, findProgram, loaderOf } from "./privateroot.ts";

/** Returns a program of 64 bits with one program header, of this type and with this text at its end. */
function makeProgram(type: number, text: string): Buffer {
  const bytes = Buffer.alloc(120 + text.length + 1);
  bytes.write("\x7fELF\x02\x01", "latin1");
  bytes.writeBigUInt64LE(64n, 32);
  bytes.writeUInt16LE(56, 54);
  bytes.writeUInt16LE(1, 56);
  bytes.writeUInt32LE(type, 64);
  bytes.writeBigUInt64LE(120n, 72);
  bytes.writeBigUInt64LE(BigInt(text.length + 1), 96);
  bytes.write(text, 120, "latin1");
  return bytes;
}

test("the dynamic loader is read from the program", () => {
  const program = makeProgram(3, "/lib64/loader.so.2");
  assert.equal(loaderOf(program), "/lib64/loader.so.2");
  assert.equal(loaderOf(makeProgram(1, "/lib64/loader.so.2")), null);
  assert.equal(loaderOf(Buffer.from("#!/bin/sh\nexec true with enough text for a header of a program\n")), null);
  for (let length = 0; length < program.length; length++) assert.equal(loaderOf(program.subarray(0, length)), null);
});

const setpriv = findProgram("setpriv");
const skip = setpriv === null && "setpriv is not installed";

test("a program needs the same files by its loader as by ldd", { skip }, async () => {
  assert.ok(existsSync(loaderOf(readFileSync(setpriv ?? "")) ?? ""));
  const calls: string[] = [];
  const list = (byLdd: boolean) =>
    findNeeds(
      {
        ...exec,
        run(argv, options) {
          calls.push(argv[0] ?? "");
          return exec.run(byLdd ? ["ldd", argv.at(-1) ?? ""] : argv, options);
        },
      },
      ["sh"],
    );
  assert.deepEqual(await list(false), await list(true));
  assert.ok(!calls.includes("ldd"));
});
