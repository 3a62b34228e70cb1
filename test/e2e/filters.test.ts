/** Filters of lists accept only known values: an unknown value is rejected instead of matching nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Domain } from "@brume/api/dns.ts";
import type { Problem } from "@brume/api/errors.ts";
import { onEveryDatabase } from "../support/harness.ts";

onEveryDatabase("filters", (harness) => {
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
