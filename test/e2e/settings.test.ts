/** The list of settings: every setting of the reference, only for administrators, as pages and by name. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ApiError } from "@brume/api/client.ts";
import { settingMeanings, settingTerms } from "../../console/src/texts/ru/settings.ts";
import { settingNames, settings } from "../../service/src/config/settings.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

let brume: TestService;
before(async () => {
  brume = await createTestService("sqlite");
});
after(() => brume.close());

test("lists every setting with its default, and pages and filters them", async () => {
  const all = await brume.client.listSettings({});
  assert.deepEqual(
    all.map(({ Variable, Value, Source }) => [Variable, Value, Source]),
    settingNames.map((name) => [name, settings[name].value ?? null, "Default"]),
  );
  const named = await brume.client.listSettings({ query: { name: "dns_*" } });
  assert.ok(named.length > 5 && named.every(({ Name }) => Name.startsWith("dns_")));
  const pages = await Array.fromAsync(brume.client.items("listSettings", { query: { limit: 10 } }));
  assert.deepEqual(pages, all);
});

test("a token without administration is rejected", async () => {
  const weak = await brume.as(["server:write", "dns:write", "network:write", "metrics:read"]);
  await assert.rejects(weak.listSettings({}), (error: ApiError) => error.code === "scope_missing");
});

test("descriptions name documents without Markdown", async () => {
  const all = await brume.client.listSettings({});
  const about = new Map(all.map(({ Variable, Description }) => [Variable, Description]));
  assert.match(about.get("BRUME_TLS_DOMAIN") ?? "", /See docs\/certificates\.md$/);
  assert.match(about.get("BRUME_DATA") ?? "", /See "Files and users" in docs\/operate\.md$/);
  for (const [name, text] of about) assert.doesNotMatch(text, /\]\(|\*\*/, name);
});

test("descriptions show the range of an integer, except of a choice of two", async () => {
  const all = await brume.client.listSettings({});
  const about = new Map(all.map(({ Variable, Description }) => [Variable, Description]));
  assert.match(about.get("BRUME_CPU_OVERCOMMIT") ?? "", /\. Range: 1 to 64$/);
  assert.match(about.get("BRUME_WIREGUARD_PORT") ?? "", /\. Range: 1024 to 65535$/);
  assert.match(about.get("BRUME_SERVER_PACKETS") ?? "", /\. Range: 100 to 100,000,000$/);
  assert.doesNotMatch(about.get("BRUME_PROCESSES") ?? "", /Range/);
});

test("the console has a Russian meaning of every setting, with the same code, documents and ranges", async () => {
  const marks = (text: string): string[] => [...text.matchAll(/`[^`]+`|docs\/\w+\.md/g)].map(([mark]) => mark).sort();
  const rangeOf = (text: string): string[] =>
    (/(?:Range|Диапазон): (.*)$/.exec(text)?.[1]?.split(/ to | до /) ?? []).map((end) => end.replaceAll(/\D/g, ""));
  assert.deepEqual(Object.keys(settingMeanings), settingNames);
  for (const { Variable, Description } of await brume.client.listSettings({})) {
    const meaning = settingMeanings[Variable] ?? "";
    assert.deepEqual(marks(meaning), marks(Description), Variable);
    assert.deepEqual(rangeOf(meaning), rangeOf(Description), Variable);
  }
});

test("the console has a Russian term for every unit of a setting, and for every text in place of a value", async () => {
  const texts = (await brume.client.listSettings({})).flatMap(({ Unit, Value, Default }) => [
    Unit,
    Value === null && /[a-z] |'s/.test(Default ?? "") ? Default : "",
  ]);
  assert.deepEqual(new Set(Object.keys(settingTerms)), new Set(texts.filter(Boolean)));
});
