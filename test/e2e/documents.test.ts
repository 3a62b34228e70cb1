/**
 * The commands of the first steps, tutorials, how-tos, questions and troubleshooting, in their order, on simulated installations. Blocks of `sh` have commands; blocks of `console` have commands after `$ ` and their output, in which numbers
 * other than addresses may differ and `…` matches any text. Settings are read as a file. Comments before a block: `<!-- not run: REASON -->` if it needs another
 * host, a device or the Internet; `<!-- file: NAME -->` if the reader writes it into a file.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { readToml } from "../../service/src/config/file.ts";
import { loadConfig } from "../../service/src/config.ts";
import { createCommandLine } from "../support/commandline.ts";
import { curl } from "../support/curl.ts";
import { keyRow } from "../support/rows.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const folder = resolve(import.meta.dirname, "../../docs");
const documents = [
  "../README.md",
  "start.md",
  "guide.md",
  "api-basics.md",
  ...readdirSync(join(folder, "tutorials")).map((name) => `tutorials/${name}`),
  ...readdirSync(join(folder, "how-to")).map((name) => `how-to/${name}`),
  "faq.md",
  "troubleshooting.md",
];

interface Block {
  readonly language: string;
  readonly text: string;
  /** Why it is not run; null: it is run. */
  readonly reason: string | null;
  /** The file that the reader writes; null: none. */
  readonly file: string | null;
}

/** Returns the fenced blocks of a document. */
const blocksOf = (markdown: string): Block[] =>
  [...markdown.matchAll(/(?:<!-- (not run|file): ([^>]+) -->\n)?( *)```(\w*)\n([^]*?)\n *```/gm)].map(
    ([, kind, note = "", indent = "", language = "", text = ""]) => ({
      reason: kind === "not run" ? note : null,
      file: kind === "file" ? note : null,
      language,
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    }),
  );

/** A command of a block, and the output that the document shows; null: it shows none. */
interface Shown {
  readonly line: string;
  readonly output: string | null;
}

/** Returns the commands of a block. */
function commandsOf({ language, text, reason }: Block): Shown[] {
  if (reason !== null) return [];
  const lines = text.replaceAll("\\\n", " ");
  if (language === "sh") return lines.split("\n").map((line) => ({ line, output: null }));
  if (language !== "console") return [];
  return lines
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [line = "", ...output] = part.split("\n");
      return { line, output: output.join("\n") };
    });
}

/** Returns true if `actual` is the text that a document shows: blanks, and numbers other than addresses, may differ; `…` is any text. */
function isShown(shown: string, actual: string): boolean {
  const plain = (text: string) =>
    text
      .trim()
      .replaceAll(/(?<!\S)(\d+(?:\.\d+){3}\S*)|SHA256:\S+|[0-9a-f]{8,}|\d+/g, (_, address?: string) => address ?? "0")
      .replaceAll(/\s+/g, "");
  const parts = plain(shown)
    .split("…")
    .map((part) => RegExp.escape(part));
  return new RegExp(`^${parts.join("[^]*")}$`).test(plain(actual));
}

/** Splits a line of a shell into words: blanks, quotes, backslashes in double quotes, and no expansion. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(
      /'([^']*)'|"((?:\\.|[^"\\])*)"/g,
      (_, single?: string, double?: string) => single ?? (double ?? "").replaceAll(/\\(.)/g, "$1"),
    ),
  );

const publicKey = `ssh-ed25519 ${keyRow(1).base64} me@laptop`;

let shared: TestService;
before(async () => {
  shared = await createTestService("sqlite");
});
after(() => shared.close());

for (const name of documents)
  test(`the commands of ${name} work`, async () => {
    const blocks = blocksOf(readFileSync(join(folder, name), "utf8"));
    // Documents that show ids begin with a new installation; the others get a project of their own, so that names are free.
    const isTutorial = /^(\.\.\/README|start|guide|tutorials\/.*)\.md$/.test(name);
    const brume = isTutorial ? await createTestService("sqlite") : shared;
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
    const own = join(call.home, "own");
    mkdirSync(join(call.home, ".ssh"));
    mkdirSync(own);
    writeFileSync(join(call.home, ".ssh/id_ed25519.pub"), publicKey);
    if (name.startsWith("tutorials/")) await call(["ssh-key", "create", "me", "--public-key", publicKey]);
    /** What the shell of the reader replaces. */
    const expand = (text: string) =>
      text
        .replaceAll("$(cat ~/.ssh/id_ed25519.pub)", publicKey)
        .replaceAll("$url", brume.url)
        .replaceAll("http://127.0.0.1:8080", brume.url)
        .replaceAll("$TOKEN", token)
        .replaceAll(/(?<="Serial":)\d+/g, (serial) => serials.get(serial) ?? serial);
    /** Serials of zones that the document shows, and those of this run. */
    const serials = new Map<string, string>();
    let newToken = "";
    /** Sends a request; `acme` has the token that the document created last. */
    const request = async (program: string, words: readonly string[]) => {
      const own = program === "curl" ? [] : ["-H", `Authorization: Bearer ${program === "acme" ? newToken : token}`];
      const { out } = await curl([...own, ...words]);
      newToken = /"Token":"(\w+)"/.exec(out)?.[1] ?? newToken;
      return out;
    };
    try {
      for (const block of blocks) {
        if (block.file !== null) writeFileSync(join(own, block.file), block.text);
        if (block.language === "toml") {
          const found = readToml(block.text, name);
          loadConfig(Object.fromEntries([...found].map(([key, { value }]) => [key, value])));
        }
        for (const { line, output } of commandsOf(block)) {
          // Variables and functions of the shell; guests are simulated, and the name server has another port.
          if (/^(\w+(=|\(\) \{)|ssh |dig )/.test(line)) continue;
          const [program = "", ...words] = wordsOf(expand(line)).map((word) =>
            word.replace(/^(@?)([\w-]+\.(?:yaml|sh|zone))$/, (_, at: string, file: string) => at + join(own, file)),
          );
          if (["curl", "api", "acme"].includes(program)) {
            const out = await request(program, words);
            if (output !== null) {
              assert.ok(isShown(output, out), `${name}: ${line}\n${out}`);
              const [shown, actual] = [output, out].map((text) => text.match(/(?<="Serial":)\d+/g) ?? []);
              for (const [index, serial] of shown?.entries() ?? []) serials.set(serial, actual?.[index] ?? "");
            } else assert.doesNotMatch(out, /"code":"/, `${name}: ${line}`);
            continue;
          }
          assert.equal(program, "brume", `${name}: ${line}: other programs need the comment "not run"`);
          let printed = "";
          const take = (text: string) => {
            printed += text;
          };
          const [, target] = words.indexOf(">") === -1 ? [] : words.splice(words.indexOf(">"));
          const { code, out, err } = await call(words, { ...(target === undefined && { onOut: take }), onErr: take });
          if (target !== undefined) writeFileSync(target, out);
          const fails = output?.startsWith("error:") === true;
          // A plan that has something to do ends with 2.
          assert.ok(
            fails ? code > 0 : code === 0 || (words[0] === "plan" && code === 2),
            `${name}: ${line}: exit code ${code}\n${err}`,
          );
          // The program `ssh` is not run.
          if (output !== null && words[0] !== "ssh")
            assert.ok(isShown(output, printed), `${name}: ${line}\n${printed}`);
        }
      }
    } finally {
      // Its names are free for the next document.
      const client = brume.clientOf(token);
      for (const { ID } of await client.listDomains()) await client.deleteDomain({ path: { id: ID } });
      call.close();
      if (isTutorial) await brume.close();
    }
  });

test("blocks, words and reasons are read", () => {
  const text = "<!-- not run: a reason -->\n```sh\na\n```\n\n   ```sh\n   brume x 'a b' --y=\"c d\"\n   ```\n";
  const [first, second] = blocksOf(text);
  assert.deepEqual(first, { language: "sh", text: "a", reason: "a reason", file: null });
  assert.deepEqual([second?.reason, wordsOf(second?.text ?? "")], [null, ["brume", "x", "a b", "--y=c d"]]);
  const all = documents.flatMap((name) => blocksOf(readFileSync(join(folder, name), "utf8")));
  const run = all.filter((block) => commandsOf(block).length > 0);
  assert.ok(run.length >= 35, `only ${run.length} blocks are run`);
});

test("output of a document may differ in numbers and blanks only", () => {
  const [block] = blocksOf("```console\n$ brume a \\\n  b\nID  X\n12  …\n$ brume c\n```\n");
  assert.ok(block);
  const [first, second] = commandsOf(block);
  assert.deepEqual([first?.line, second], ["brume a    b", { line: "brume c", output: "" }]);
  assert.ok(isShown(first?.output ?? "", "ID   X\n3    any text\n"));
  assert.ok(!isShown(first?.output ?? "", "ID  Y\n3  any text\n"));
  assert.ok(!isShown("", "something"));
});
