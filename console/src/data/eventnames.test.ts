import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@brume/api/event.ts";
import { namesOf, withNames } from "./eventnames.ts";

const event = (Resource: string, ResourceID: number, Data: object | null, ParentID: number | null = null): Event =>
  ({ Resource, ResourceID, ParentID, Data }) as Event;

test("a deleted object and the server of an action have the names that other events show", () => {
  const events = [
    event("server", 1, null),
    event("action", 7, { Type: "Delete" }, 1),
    event("sshkey", 1, null),
    event("server", 1, { Name: "web" }),
    event("server", 1, { Name: "old" }),
    event("domain", 1, { Name: "example.com" }),
  ];
  assert.deepEqual(
    withNames(events).map(({ name }) => name),
    ["web", "web", undefined, undefined, undefined, undefined],
  );
  assert.equal(namesOf(events).get("server 1"), "web");
});
