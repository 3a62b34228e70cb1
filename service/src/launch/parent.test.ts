import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";

test("lines that arrive before there is a listener are received later", async () => {
  const script = `
    import { setImmediate as turn } from "node:timers/promises";
    const { connectParent } = await import(${JSON.stringify(import.meta.resolve("./parent.ts"))});
    const { settings, ready, onMessage } = await connectParent(() => process.exit(1));
    await turn();
    ready();
    onMessage((message) => console.log(JSON.stringify([settings, message])));
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit", "pipe"],
  });
  const stream = child.stdio[3] as Socket;
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  stream.write('{"first":1}\n{"second":2}\n');
  await once(stream, "data");
  stream.write('{"third":3}\n');
  while (!output.includes("third")) await once(child.stdout as NodeJS.ReadableStream, "data");
  child.kill("SIGKILL");
  assert.deepEqual(output.trim().split("\n"), ['[{"first":1},{"second":2}]', '[{"first":1},{"third":3}]']);
});
