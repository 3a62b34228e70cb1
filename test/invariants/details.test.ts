/**
 * The console shows details of errors in Russian. This test finds the English ones in the sources of the service and of the contract, and
 * fails for each without a translation, so a new error cannot be forgotten, and for each translation that no source needs any more.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { before, describe, test } from "node:test";
import { quotaNames } from "@brume/api/account.ts";
import { details, translateDetail } from "../../console/src/texts/ru/details.ts";
import { readSentences, type Sentence } from "../support/sentences.ts";

const root = resolve(import.meta.dirname, "../..");

interface Exception {
  readonly files: RegExp;
  /** With the numbers 101, 102 … for values. */
  readonly sentence: RegExp;
  readonly reason: string;
}

const whole = /^101$/;

/** What the reader finds although no client gets it, and what it cannot follow. */
const exceptions: readonly Exception[] = [
  { files: /^api\/src\/errors\.ts/, sentence: /./, reason: "a title: it is translated by its code" },
  {
    files: /^service\/src\/dns\/model\/rules\.ts/,
    sentence: /^Подобная /,
    reason: "existing clients search for this Russian text",
  },
  { files: /./, sentence: /must have (keys|values) of (, not \d+)?\.$/, reason: "all keys and values are described" },
  { files: /form\.ts/, sentence: /must not be sent\.$/, reason: "without other fields the sentence names them" },
  { files: /report\.ts/, sentence: /, not .+, not /, reason: "of another check, which completes its sentence itself" },
  { files: /keyroutes\.ts/, sentence: /^PublicKey 101\.$/, reason: "all reasons are found where they are returned" },
  { files: /webhook\/routes\.ts/, sentence: /^Url 101\.$/, reason: "the reason is in `hidden`" },
  { files: /nics\.ts|http\/(pipeline|connection)\.ts/, sentence: whole, reason: "the sentence is in `hidden`" },
  { files: /api\/src\/(common|components)|agent\/contract/, sentence: whole, reason: "a schema, no error" },
  {
    files: /image\/manifest\.ts/,
    sentence: /^image\.json /,
    reason: "of a file that the operator has written, and for the log of the service",
  },
  { files: /agent\/error\.ts/, sentence: whole, reason: "between the agent and the control plane" },
  { files: /transport\.ts/, sentence: whole, reason: "the client's error, from a response" },
  {
    files: /batchroutes\.ts|claimreconciler\.ts|transition\.ts/,
    sentence: whole,
    reason: "the message of an error that is found where it is created",
  },
  { files: /webhook\/(table|outcome)\.ts/, sentence: whole, reason: "a result of the sender, which is found there" },
  {
    files: /webhook\/sender\.ts/,
    sentence: whole,
    reason: "null for success, and a refusal, whose sentence is in `hidden`",
  },
  { files: /migrate\.ts/, sentence: whole, reason: "of an import that succeeded: the console does not show it" },
  { files: /flow\/resize\.ts/, sentence: whole, reason: "numbers with units" },
  {
    files: /flow\/import\.ts|ipsec\.ts|wireguard\.ts/,
    sentence: whole,
    reason: "the message of an engine or of its driver, which stays in English",
  },
];

interface Hidden {
  readonly file: string;
  /** The part of the source that contains it. */
  readonly text: string;
  readonly sentence: string;
}

/** Sentences that the reader does not find, because they are passed on by a function that it cannot follow. */
const hidden: readonly Hidden[] = [
  {
    file: "service/src/drivers/webhook/sender.ts",
    text: "must not lead to an address that webhooks may not call; BRUME_WEBHOOK_ALLOW allows more",
    sentence: "Url must not lead to an address that webhooks may not call; BRUME_WEBHOOK_ALLOW allows more.",
  },
  {
    file: "service/src/drivers/webhook/sender.ts",
    text: "has an address that webhooks may not call (BRUME_WEBHOOK_ALLOW allows more).",
    sentence: '"101" has an address that webhooks may not call (BRUME_WEBHOOK_ALLOW allows more).',
  },
  {
    file: "service/src/webhook/outcome.ts",
    text: "Dropped: more than ${maxWaiting} deliveries waited while the endpoint accepted others.",
    sentence: "Dropped: more than 101 deliveries waited while the endpoint accepted others.",
  },
  ...[
    ["returned status ${status} for ${url.pathname}`", '"101" returned status 102 for 103'],
    ["no data for ${idleTimeout / 1000} s`", "no data for 102 s"],
    ['"the file has changed"', "the file has changed"],
    // Messages of Node.
    ["new Interruption(error.message", "getaddrinfo ENOTFOUND 102"],
    ["new Interruption(error.message", "getaddrinfo EAI_AGAIN 102"],
    ["new Interruption(error.message", "connect ECONNREFUSED 102"],
  ].map(([text = "", reason]) => ({
    file: "service/src/drivers/machine/image/download.ts",
    text,
    sentence: `"101" could not be read: ${reason}.`,
  })),
  {
    file: "service/src/drivers/machine/sim/sim.ts",
    text: '"Images cannot be imported: servers are simulated."',
    sentence: "Images cannot be imported: servers are simulated.",
  },
  // What the checks of the host have found.
  ...[
    ["health.ts", '"not checked yet"', "not checked yet"],
    ["health.ts", "${store.kind} does not respond`", "sqlite does not respond"],
    ["health.ts", "${store.kind} does not respond`", "postgres does not respond"],
    ["drivers/machine/choose.ts", '"sim: no guest runs"', "sim: no guest runs"],
    ["drivers/router/linux/start.ts", '"sim: no packet flows"', "sim: no packet flows"],
    ["http/diskspace.ts", '"not watched"', "not watched"],
    ["http/diskspace.ts", "free for the data`", "101 of 102 free for the data"],
    [
      "http/diskspace.ts",
      "Free some space, or changes can no longer be stored.`",
      "low: 101 of 102 free for the data, less than 103. Free some space, or changes can no longer be stored.",
    ],
  ].map(([file = "", text = "", sentence = ""]) => ({ file: `service/src/${file}`, text, sentence })),
  ...quotaNames.map((quota) => ({
    file: "service/src/account/model/rules.ts",
    text: "`${quota}: wanted ${wanted}, free ${free}, limit ${limit}.`",
    sentence: `${quota}: wanted 101, free 102, limit 103.`,
  })),
  {
    file: "service/src/server/flow/nics.ts",
    text: "`Server ${server}: timed out waiting for network ${ids}.`",
    sentence: "Server 101: timed out waiting for network 102. Network 102 is missing on the host. Repairing.",
  },
  ...["create.ts", "links.ts"].map((file) => ({
    file: `service/src/server/flow/${file}`,
    text: "done = { Reserve: `${showAddress(link.ip)} on network ${",
    sentence: "101 on network 102",
  })),
  {
    file: "service/src/dns/domainroutes.ts",
    text: 'reason: message.replace(/\\.$/, "")',
    sentence: "line 101: A CNAME must be the only record at its name, but there is another record.",
  },
  { file: "service/src/http/server.ts", text: '"The service is starting."', sentence: "The service is starting." },
  ...[
    [
      '"Both addresses are in the network: such traffic',
      "Both addresses are in the network: such traffic does not cross its router and is not filtered.",
    ],
    [
      "is the router of the network: rules do not",
      "101 is the router of the network: rules do not filter the packets that it sends.",
    ],
    ...["the network", "outside"].map((from) => [
      `which rules do not filter: from \${isInside ? "the network" : "outside"} it accepts only`,
      `101 is the router of the network, which rules do not filter: from ${from} it accepts only 102.`,
    ]),
    [
      "is closed to servers:",
      "101 is closed to servers: such addresses are the host's or its provider's, and no rule opens them.",
    ],
  ].map(([text = "", sentence = ""]) => ({ file: "service/src/network/model/firewall/check.ts", text, sentence })),
  {
    file: "service/src/drivers/router/ipsec/ipsec.ts",
    text: '"charon does not respond."',
    sentence: "charon does not respond.",
  },
];

/** Words of the API, of programs, formats and settings, which are the same in every language. */
const names = new Set(
  "any arch bytes charon chunked cursor false from http https id identity label newest operation peer raw resource step tcp to true www".split(
    " ",
  ),
);

/** Returns the text of a sentence with the numbers 101, 102 … for its values. */
function sampleOf({ parts }: Sentence): { readonly text: string; readonly values: readonly string[] } {
  const values: string[] = [];
  const text = parts.map((part) => part ?? (values.push(String(101 + values.length)), values.at(-1))).join("");
  return { text, values };
}

describe("details in Russian", () => {
  let sentences: readonly Sentence[];
  const used = new Set<unknown>();

  before(() => {
    const files = globSync("{service,api}/src/**/*.ts", {
      cwd: root,
      // Examples of the documentation.
      exclude: ["**/*.test.ts", "**/node_modules/**", "api/src/examples/**", "api/src/openapi.ts"],
    });
    sentences = readSentences(
      root,
      files.map((file) => join(root, file)),
    );
  });

  test("each detail of the sources has a translation with its values and no English words", () => {
    const applied = new Set<object>();
    const wrong = sentences.flatMap((sentence) => {
      const { text, values } = sampleOf(sentence);
      const exception = exceptions.find((one) => one.files.test(sentence.at) && one.sentence.test(text));
      if (exception !== undefined) {
        applied.add(exception);
        return [];
      }
      const found = translateDetail(text);
      if (found === null) return [`${sentence.at}: ${text}`];
      for (const entry of found.used) used.add(entry);
      const english = found.text.split(/[\s«»"(),;]+/).filter((word) => /^[a-z']{2,}[.:]?$/.test(word));
      const isRussian =
        values.every((value) => found.text.includes(value)) &&
        english.every((word) => names.has(word.replace(/[.:]$/, "")));
      return isRussian ? [] : [`${sentence.at}: ${text} → ${found.text}`];
    });
    assert.deepEqual(wrong, [], "add these to console/src/texts/ru/details/");
    assert.ok(sentences.length > 1000);
    assert.deepEqual(
      exceptions.filter((one) => !applied.has(one)),
      [],
    );
  });

  test("details that the sources hide have a translation too", () => {
    for (const { file, text, sentence } of hidden) {
      assert.ok(readFileSync(join(root, file), "utf8").includes(text), `${file}: ${text}`);
      const found = translateDetail(sentence);
      assert.match(found?.text ?? "", /[а-я]/, sentence);
      if (sentence.includes(": wanted ")) assert.doesNotMatch(found?.text ?? "", /^[A-Za-z]+:/, sentence);
      for (const entry of found?.used ?? []) used.add(entry);
    }
  });

  test("each translation is used", () => {
    const unused = [...details.sentences, ...details.phrases].filter((entry) => !used.has(entry));
    assert.deepEqual(
      unused.map(([template]) => template),
      [],
    );
  });

  test("each translation has the values of its template, and each template is there once", () => {
    const gapsOf = (text: string): string[] => (text.match(/\{(?:[1-9]|[A-Za-z]\??)\}/g) ?? []).sort();
    for (const table of [details.sentences, details.phrases]) {
      for (const [template, translation] of table) assert.deepEqual(gapsOf(translation), gapsOf(template), template);
      assert.equal(new Set(table.map(([template]) => template)).size, table.length);
    }
  });
});
