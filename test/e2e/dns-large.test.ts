/** Lists that are too large for one response: a page ends early and links to the next one (decision 5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Domain, Version } from "@brume/api/dns.ts";
import { mostParts } from "../../service/src/http/list.ts";
import { onSqliteFirst } from "../support/harness.ts";

const many = Math.floor(mostParts * 0.4);

onSqliteFirst("large lists", (harness) => {
  /** Reads a page and the link to the next one. Without the harness, which would check every key of every record. */
  async function read(target: string, token = harness.token) {
    const response = await fetch(harness.brume.url + target, { headers: { Authorization: `Bearer ${token}` } });
    const next = /<([^>]*)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
    assert.ok(Number(response.headers.get("content-length")) < 60_000_000);
    return {
      items: (await response.json()) as (Domain & Version)[],
      next,
      total: response.headers.get("x-total-count"),
    };
  }

  test("of records are returned in pages, which may be shorter than requested", async () => {
    const caller = await harness.neighbour();
    const ids: number[] = [];
    for (const name of ["a", "b", "c"])
      ids.push((await caller.client.createDomain({ body: { Name: `${name}.large.example` } })).ID);
    await harness.brume.store.write(async (tx) => {
      // The size of a response is estimated from this column, so the test need not create that many records.
      for (const id of ids) await tx.updateTable("domain").set({ record_count: many }).where("id", "=", id).execute();
    });
    for (const target of ["/dns", "/dns?limit=1000"]) {
      const first = await read(target, caller.token);
      const second = await read(first.next ?? "", caller.token);
      assert.deepEqual([first.total, second.total, second.next], ["3", "3", undefined]);
      assert.deepEqual(
        [first, second].map(({ items }) => items.map(({ ID }) => ID)),
        [[ids[0], ids[1]], [ids[2]]],
      );
    }
    assert.equal((await read("/dns?records=false", caller.token)).next, undefined);
  });

  test("of versions are returned in pages too, and can be restored", async () => {
    const domain = await harness.domain();
    const path = { id: domain.ID };
    const record = { type: "A", ttl: 60, value: "192.0.2.1", created: 1, labels: "{}" };
    const change = (id: number) => ({ op: "Create", before: null, after: { id, owner: `h${id}`, ...record } });
    const changes = JSON.stringify(Array.from({ length: many / 2 }, (_, index) => change(1_000_000 + index)));
    await harness.brume.store.write(async (tx) => {
      for (const step of [1, 2, 3]) {
        const row = {
          domain_id: domain.ID,
          serial: domain.Serial + step,
          date: 1,
          token_id: 1,
          request_id: "x",
          changes,
        };
        await tx.insertInto("domain_version").values(row).execute();
      }
    });
    const first = await read(`/dns/${domain.ID}/history`);
    const second = await read(first.next ?? "");
    assert.deepEqual([first.total, second.total, second.next], ["4", "4", undefined]);
    const serials = [first, second].map(({ items }) => items.map(({ Serial }) => Serial - domain.Serial));
    assert.deepEqual(serials, [
      [3, 2],
      [1, 0],
    ]);
    const back = await harness.client.restoreVersion({ path, body: { Serial: domain.Serial } });
    assert.equal(back.Deleted, 0, "none of them is there");
  });
});
