/**
 * The published document satisfies the recommended rules of two linters, Redocly and Spectral. The rules that it breaks on purpose are in
 * decision 17 with the reason, and each of them still finds something: a rule without findings leaves the list.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contract } from "@brume/api/contract.ts";
import { describeApi } from "@brume/api/openapi.ts";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import spectralCore, { type RulesetDefinition } from "@stoplight/spectral-core";
import spectralRulesets from "@stoplight/spectral-rulesets";
import { triesAll } from "../support/random.ts";

const published = JSON.stringify(describeApi(contract, { version: "0.1.0" }));
/** The same of few operations. */
const few = JSON.stringify(
  describeApi({ readAccount: contract.readAccount, listEvents: contract.listEvents }, { version: "0.1.0" }),
);
const decision = readFileSync(
  new URL("../../docs/decisions/0017-rules-that-the-openapi-document-breaks.md", import.meta.url),
  "utf8",
);

/** Rules that the document breaks on purpose, by linter, and the places. */
const refuted: Readonly<Record<"redocly" | "spectral", Readonly<Record<string, RegExp>>>> = {
  redocly: {
    "no-ambiguous-paths": /^#\/paths\/~1dns~1/,
    "no-illogical-composition-keywords": /^#\/components\/schemas\/\w+\/oneOf$/,
  },
  spectral: {
    "oas3-operation-security-defined": /^paths\/.*\/security\/0\/token\/0$/,
  },
};

/** A finding of a linter: name of the rule, place in the document, and the text of the linter. */
interface Finding {
  readonly rule: string;
  readonly place: string;
  readonly message: string;
}

async function lintByRedocly(source: string): Promise<Finding[]> {
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source, absoluteRef: "/openapi.json", config });
  return problems.map(({ ruleId, location, message }) => ({
    rule: ruleId,
    place: location[0]?.pointer ?? "",
    message,
  }));
}

/**
 * Rules that compile a schema for each example, which takes most of the time of this file. `openapi.test.ts` validates the same examples, so
 * these rules run with `TEST_RUNS=all` only.
 */
const exampleRules = ["oas3-valid-media-example", "oas3-valid-schema-example"];

async function lintBySpectral(source: string): Promise<Finding[]> {
  const spectral = new spectralCore.Spectral();
  const off = triesAll ? [] : exampleRules;
  spectral.setRuleset({
    extends: [spectralRulesets.oas as RulesetDefinition],
    rules: Object.fromEntries(off.map((rule) => [rule, "off"] as const)),
  });
  const found = await spectral.run(JSON.parse(source) as Record<string, unknown>);
  return found.map(({ code, path, message }) => ({ rule: String(code), place: path.join("/"), message }));
}

const linters = { redocly: lintByRedocly, spectral: lintBySpectral };
for (const [name, lint] of Object.entries(linters) as ["redocly" | "spectral", (typeof linters)["redocly"]][]) {
  test(`the document satisfies the recommended rules of ${name}`, async () => {
    const found = await lint(published);
    assert.deepEqual(
      found.filter(({ rule, place }) => !refuted[name][rule]?.test(place)),
      [],
    );
    for (const rule of Object.keys(refuted[name])) {
      assert.ok(
        found.some((one) => one.rule === rule),
        `${rule} finds nothing: remove it from the list`,
      );
      assert.match(decision, new RegExp(`^- \`${rule}\``, "m"));
    }
  });

  test(`${name} finds a wrong document`, async () => {
    const wrong = few
      .replace('"operationId":"readAccount"', '"operationId":"listEvents"')
      .replace('"info":{', '"info":{"termsOfService":7,');
    const rules = (await lint(wrong)).map(({ rule }) => rule);
    for (const rule of ["operation-operationId-unique", name === "redocly" ? "struct" : "oas3-schema"])
      assert.ok(rules.includes(rule), rules.join());
  });
}
