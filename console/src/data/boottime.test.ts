import assert from "node:assert/strict";
import { test } from "node:test";
import type { Action } from "@brume/api/action.ts";
import { bootsUntil } from "./boottime.ts";

const EndDate = "2026-11-28T07:00:00.000Z";
const action = (Type: Action["Type"], ...steps: string[]): Action =>
  ({ Type, State: "Completed", EndDate, Steps: steps.map((Name) => ({ Name })) }) as Action;

test("a guest may boot for some minutes after the last start, unless the start has waited for it", () => {
  const end = Date.parse(EndDate) + 180_000;
  assert.equal(bootsUntil([action("PowerOn", "Boot")]), end);
  assert.equal(bootsUntil([action("EditNetworkBandwidth"), action("RebootGuestOS"), action("Create")]), end);
  assert.equal(bootsUntil([{ ...action("PowerOff"), State: "InProgress", EndDate: null }, action("Create")]), end);
  assert.equal(bootsUntil([action("PowerOff"), action("Create")]), null);
  assert.equal(bootsUntil([action("Create", "Boot", "Ssh")]), null);
  assert.equal(bootsUntil([action("Rebuild", "Boot", "Guest")]), null);
  assert.equal(bootsUntil([]), null);
});
