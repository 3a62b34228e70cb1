/** Lists (docs/spec.md#lists): pages with links and counts, and filters, of which an unknown value is rejected instead of matching nothing. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Domain } from "@brume/api/dns.ts";
import type { Problem } from "@brume/api/errors.ts";
import { type Caller, onSqliteFirst, refused, type TestResponse } from "../support/harness.ts";

/** Returns the code of each entry of `errors`, by pointer. */
const errorsOf = ({ json }: TestResponse): Record<string, string> =>
  Object.fromEntries(
    (json as { errors: { pointer: string; code: string }[] }).errors.map((one) => [one.pointer, one.code]),
  );

onSqliteFirst("lists", (harness) => {
  let caller: Caller;
  const names = Array.from({ length: 7 }, (_, i) => `page${i}.example`);
  before(async () => {
    caller = await harness.neighbour();
    for (const Name of names)
      await caller.client.createDomain({ body: { Name, Labels: { odd: Name.charCodeAt(4) % 2 ? "1" : "0" } } });
  });

  test("pages have links with all filters", async () => {
    const first = await caller.request("GET /dns?limit=3&records=false&NAME=page*");
    const link = first.headers.get("link") ?? "";
    assert.match(link, /^<\/dns\?[^>]*>; rel="next"$/);
    for (const part of ["limit=3", "records=false", "NAME=page*", "cursor="])
      assert.ok(decodeURIComponent(link).includes(part), link);
    assert.equal(first.headers.get("x-total-count"), "7");
    const second = await caller.request(`GET ${/<(.*)>/.exec(link)?.[1] ?? ""}`);
    assert.deepEqual(
      (second.json as Domain[]).map(({ Name }) => Name),
      names.slice(3, 6),
    );
    const third = await caller.request(`GET ${/<(.*)>/.exec(second.headers.get("link") ?? "")?.[1] ?? ""}`);
    assert.deepEqual(
      (third.json as Domain[]).map(({ Name }) => Name),
      names.slice(6),
    );
    assert.equal(third.headers.get("link"), null);
    assert.equal((await caller.request("GET /dns?limit=7")).headers.get("link"), null);
    assert.equal(((await caller.request("GET /dns")).json as Domain[]).length, 7);
  });

  test("pages have a count of the filtered objects", async () => {
    const odd = await caller.client.raw.listDomains({ query: { label: "odd=1", limit: 1 } });
    assert.deepEqual([odd.answer.length, odd.headers.get("x-total-count")], [1, "3"]);
  });

  test("pages neither skip nor repeat objects during changes", async () => {
    const seen: string[] = [];
    for await (const page of caller.client.pages("listDomains", { query: { limit: 2 } })) {
      seen.push(...page.map(({ Name }) => Name));
      if (seen.length !== 4) continue;
      await caller.client.deleteDomain({ path: { id: page[1]?.ID ?? 0 } });
      await caller.client.createDomain({ body: { Name: "page-late.example" } });
    }
    assert.deepEqual(seen, [...names, "page-late.example"]);
  });

  for (const query of [
    "limit=0",
    "limit=1001",
    "limit=x",
    "limit=1.5",
    "cursor=nonsense",
    "cursor=%00",
    "label=a%3D%3D%3Db",
    "label=a,,b",
    "label=(",
    "label=-a",
    "state=Activ",
    "state=Active,bogus",
    "records=maybe",
  ])
    test(`${query} is rejected`, async () => {
      const response = await caller.request(`GET /dns?${query}`);
      assert.equal(response.code, "query_invalid", response.text);
      const name = `?${query.split("=")[0]}`;
      assert.deepEqual(errorsOf(response), { [name]: "query_invalid" });
      assert.deepEqual(Object.keys((response.json as { ModelState: object }).ModelState), [name.slice(1)]);
    });

  test("a malformed selector of labels is rejected with any other filter", async () => {
    const none = await harness.neighbour();
    for (const path of ["/dns", "/network", "/publicnetwork", "/server"])
      for (const more of ["", "&name=a", "&name=*a", "&limit=1"])
        assert.equal((await none.request(`GET ${path}?label=(${more}`)).code, "query_invalid", path + more);
    for (const more of ["state=Failed", "state=Active", "ip=10.0.0.1", "batch=1", "network=1", "location=x"])
      assert.equal((await none.request(`GET /server?label=(&${more}`)).code, "query_invalid", more);
  });

  test("an unknown project has no tokens", async () => {
    await refused(harness.client.listTokens({ query: { project: 99_999 } }), "project_not_found");
  });

  test("an unknown value of a filter is rejected with the list of known values", async () => {
    await harness.domain();
    const all = ["/dns", "/server", "/image", "/publicnetwork", "/network", "/server/1/action"];
    for (const path of all) {
      const response = await harness.request(`GET ${path}?state=Activ`);
      assert.equal(response.code, "query_invalid", path);
      assert.match(
        (response.json as Problem).detail,
        /^state must be one or several of .*(Active|Completed).*, not "Activ"\.$/,
      );
    }
    assert.equal((await harness.request("GET /server/1/action?type=bogus")).code, "query_invalid");
    assert.equal(((await harness.request("GET /dns?state=active,NEW")).json as Domain[]).length, 1);
  });
});
