import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { renderManual, renderPage } from "./reference.ts";
import { allCommands } from "./run.ts";

const commands = allCommands();

test("the committed reference page is that of the table of commands", () => {
  const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
  assert.equal(page, renderPage(commands), "run: node scripts/cli-reference.ts");
  for (const { words, hidden } of commands)
    assert.equal(page.includes(`### brume ${words.join(" ")}\n`), hidden !== true, words.join(" "));
});

test("the manual page has every command, and no line that troff reads as a request by accident", () => {
  const manual = renderManual(commands, "1.0.0");
  assert.match(manual, /\.SS brume server create NAME \[flags\]\n/);
  const requests = new Set(manual.split("\n").flatMap((line) => /^[.']\S*/.exec(line)?.[0] ?? []));
  assert.deepEqual([...requests].toSorted(), [".B", ".I", ".SH", ".SS", ".TH", ".TP"]);
});
