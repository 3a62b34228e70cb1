/**
 * The commands of the how-tos, of the questions and of troubleshooting: each document runs on a new simulated installation, in its order. A
 * block that needs another host, a device or the Internet has the comment `<!-- not run: REASON -->` before it. Settings are read as a file.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { readToml } from "../../service/src/config/file.ts";
import { loadConfig } from "../../service/src/config.ts";
import { createCommandLine } from "../support/commandline.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const folder = resolve(import.meta.dirname, "../../docs");
const documents = [
  ...readdirSync(join(folder, "how-to")).map((name) => `how-to/${name}`),
  "faq.md",
  "troubleshooting.md",
];

interface Block {
  readonly language: string;
  readonly text: string;
  /** Why it is not run; null: it is run. */
  readonly reason: string | null;
}

/** Returns the fenced blocks of a document. */
const blocksOf = (markdown: string): Block[] =>
  [...markdown.matchAll(/(?:<!-- not run: ([^>]+) -->\n)? *```(\w*)\n([^]*?)\n *```/gm)].map(
    ([, reason, language = "", text = ""]) => ({
      reason: reason ?? null,
      language,
      text: text.replaceAll(/^ {3}/gm, ""),
    }),
  );

/** Splits a line of a shell into words: blanks, quotes and no expansion. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replaceAll(/'([^']*)'|"([^"]*)"/g, "$1$2"));

let brume: TestService;
before(async () => {
  brume = await createTestService("sqlite");
});
after(() => brume.close());

for (const name of documents)
  test(`the commands of ${name} work`, async () => {
    const blocks = blocksOf(readFileSync(join(folder, name), "utf8"));
    // A project of its own, so that names are free.
    const token = (
      await brume.client.createToken({
        body: {
          Name: name.replaceAll(/\W/g, "-"),
          Scopes: ["server:write", "dns:write", "network:write", "account:admin", "metrics:read"],
          ProjectID: (await brume.client.createProject({ body: { Name: name } })).ID,
        },
      })
    ).Token;
    const call = createCommandLine(brume.url, token);
    try {
      for (const { language, text, reason } of blocks) {
        if (language === "toml") {
          const found = readToml(text, name);
          loadConfig(Object.fromEntries([...found].map(([key, { value }]) => [key, value])));
        }
        if (language !== "sh" || reason !== null) continue;
        for (const line of text.replaceAll("\\\n", " ").split("\n")) {
          const [program, ...words] = wordsOf(line);
          assert.equal(program, "brume", `${name}: ${line}: other programs need the comment "not run"`);
          const { code, err } = await call(words);
          // The doctor finds that the installation is simulated.
          assert.equal(code, 0, `${name}: ${line}\n${err}`);
        }
      }
    } finally {
      // Its names are free for the next document.
      const client = brume.clientOf(token);
      for (const { ID } of await client.listDomains()) await client.deleteDomain({ path: { id: ID } });
      call.close();
    }
  });

test("blocks, words and reasons are read", () => {
  const text = "<!-- not run: a reason -->\n```sh\na\n```\n\n   ```sh\n   brume x 'a b' --y=\"c d\"\n   ```\n";
  const [first, second] = blocksOf(text);
  assert.deepEqual(first, { language: "sh", text: "a", reason: "a reason" });
  assert.deepEqual([second?.reason, wordsOf(second?.text ?? "")], [null, ["brume", "x", "a b", "--y=c d"]]);
  const all = documents.flatMap((name) => blocksOf(readFileSync(join(folder, name), "utf8")));
  const run = all.filter(({ language, reason }) => language === "sh" && reason === null);
  assert.ok(run.length >= 15, `only ${run.length} blocks are run`);
});
