import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@brume/api/event.ts";
import { QueryClient } from "@tanstack/react-query";
import { applyEvents, collapse, merge } from "./patch.ts";

const event = (
  ID: number,
  Type: string,
  ResourceID: number,
  Data: object | null,
  ParentID: number | null = null,
): Event => ({ ID, Type, Resource: Type.split(".")[0], ResourceID, ParentID, Data }) as Event;

test("an event replaces the object and its row, and keeps secrets and omitted records", () => {
  const queries = new QueryClient();
  const server = { ID: 1, Name: "a", AdminPassword: "secret" };
  queries.setQueryData(["server", "one", 1], server);
  queries.setQueryData(["server", "list"], [server, { ID: 2, Name: "b" }]);
  const stale = applyEvents(queries, [event(5, "server.changed", 1, { ID: 1, Name: "c", AdminPassword: "" })]);
  assert.deepEqual(stale, []);
  assert.deepEqual(queries.getQueryData(["server", "one", 1]), { ID: 1, Name: "c", AdminPassword: "secret" });
  assert.deepEqual(
    queries.getQueryData<{ Name: string }[]>(["server", "list"])?.map(({ Name }) => Name),
    ["c", "b"],
  );
  assert.deepEqual(merge({ LinkedRecords: [1] }, { LinkedRecords: [], Serial: 2 }), { LinkedRecords: [1], Serial: 2 });
});

test("a created object makes its list stale, a deleted one leaves it", () => {
  const queries = new QueryClient();
  queries.setQueryData(["action", "list", 1], [{ ID: 7 }]);
  const created = event(5, "action.created", 8, { ID: 8 }, 1);
  assert.deepEqual(applyEvents(queries, [created, event(6, "action.changed", 8, { ID: 8 }, 1)]), [
    ["action", "list", 1],
  ]);
  applyEvents(queries, [event(7, "action.deleted", 7, null, 1)]);
  assert.deepEqual(queries.getQueryData(["action", "list", 1]), []);
});

test("of many events of one object only the last is applied", () => {
  const many = Array.from({ length: 1000 }, (_, index) => event(index, "server.changed", 1, { ID: 1, RAM: index }));
  const [last, ...others] = collapse(many);
  assert.deepEqual([last?.Data, others.length], [{ ID: 1, RAM: 999 }, 0]);
});

test("events without counters, or with some rules only, keep what was read before", () => {
  const rule = (Name: string, Packets: number | null) => ({ Name, Packets, Bytes: Packets, LastHit: null });
  const before = { Id: 1, Firewall: { Rules: [rule("a", 5), rule("b", 7)] } };
  assert.deepEqual(merge(before, { Id: 1, Firewall: { Rules: [rule("a", null), rule("c", null)] } }), {
    Id: 1,
    Firewall: { Rules: [rule("a", 5), rule("c", null)] },
  });
  assert.deepEqual(merge(before, { Id: 1, Firewall: { Rules: [rule("b", null)], Omitted: 600 } }), before);
});
