import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@brume/api/event.ts";
import { foldEvents, namesOf, withNames } from "./eventnames.ts";

const event = (Resource: string, ResourceID: number, Data: object | null, ParentID: number | null = null): Event =>
  ({ Resource, ResourceID, ParentID, Data }) as Event;

test("of an action only the newest event is left, also between those of others", () => {
  const events = [
    event("action", 7, { State: "Completed" }),
    event("server", 7, { Name: "web" }),
    event("action", 8, { State: "InProgress" }),
    event("action", 7, { State: "InProgress" }),
    event("server", 7, { Name: "old" }),
  ];
  assert.deepEqual(foldEvents(events), [events[0], events[1], events[2], events[4]]);
});

test("of events of one object that follow each other only the newest is left", () => {
  const events = [
    event("publicnetwork", 2, { Name: "shop" }),
    event("publicnetwork", 2, { Name: "shop" }),
    event("publicnetwork", 3, { Name: "lab" }),
    event("network", 3, { Name: "storage" }),
    event("action", 7, { State: "InProgress" }),
    event("network", 3, { Name: "storage" }),
    event("action", 7, { State: "New" }),
    event("network", 3, null),
    event("publicnetwork", 2, { Name: "shop" }),
  ];
  assert.deepEqual(foldEvents(events), [events[0], events[2], events[3], events[4], events[5], events[8]]);
});

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

test("a change of the service that ends rules on trial is a roll-back, any other change is none", () => {
  const firewall = (ID: number, ConfirmBy: string | null, TokenID: number | null, Type = "publicnetwork.changed") =>
    ({ ID, Type, Resource: "publicnetwork", ResourceID: 1, TokenID, Data: { Firewall: { ConfirmBy } } }) as Event;
  const by = "2026-11-28T07:00:00.000Z";
  const rollBacks = (...events: Event[]) => withNames(events.toReversed()).filter((one) => one.isRollBack);
  const applied = firewall(2, by, null, "publicnetwork.applied");
  assert.deepEqual(
    rollBacks(firewall(1, by, 7), applied, firewall(3, null, null), firewall(4, null, null)).map(({ ID }) => ID),
    [3],
  );
  // Confirmed by a client.
  assert.deepEqual(rollBacks(firewall(1, by, 7), firewall(2, null, 7), firewall(3, null, null)), []);
  assert.deepEqual(rollBacks(firewall(1, by, 7), { ...firewall(2, null, null), ResourceID: 2 }), []);
});
