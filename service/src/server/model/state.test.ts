import assert from "node:assert/strict";
import { test } from "node:test";
import { actionTypes, actionVerdicts, requestTypes, type ServerRequest } from "@brume/api/action.ts";
import { actionTypeOf, flowName, requireCancelable, requirePowerOff, requireRequest, stateAfter } from "./state.ts";

type State = "New" | "Active" | "Blocked" | "Deleting" | "Failed";
const server = (state: State, on = true) => ({ id: 17, state, is_on: on ? 1 : 0 });
const queue = (...names: string[]) =>
  names.map((name, index) => ({ id: 50 + index, name: name.includes(".") ? name : `server.${name}` }));

/** The table of docs/spec.md#server-states, word for word: on, off, Blocked, Deleting, Failed. */
const table: Readonly<Record<string, string>> = {
  PowerOn: "same run no no no",
  PowerOff: "run same no no no",
  PowerReboot: "run no no no no",
  ShutDownGuestOS: "run same no no no",
  RebootGuestOS: "run no no no no",
  AddNetwork: "run run no no no",
  RemoveNetwork: "run run no no no",
  EditNetworkBandwidth: "run run no no no",
  Resize: "run run no no no",
  Copy: "run run no no no",
  Image: "run run no no no",
  Rebuild: "run run no no no",
  Delete: "now now now done now",
};
const states = [server("Active"), server("Active", false), server("Blocked"), server("Deleting"), server("Failed")];

test("the state table is that of the specification and contains every request", () => {
  assert.deepEqual(Object.keys(actionVerdicts), Object.keys(table));
  for (const type of requestTypes) assert.ok(type in table, type);
  for (const [ask, row] of Object.entries(table))
    for (const [index, verdict] of row.split(" ").entries()) {
      const request = () => requireRequest(states[index] ?? assert.fail(), [], ask as ServerRequest);
      if (verdict === "no") assert.throws(request, { code: "action_not_allowed" }, `${ask} ${index}`);
      else assert.equal(request(), verdict, `${ask} ${index}`);
    }
});

test("running and queued actions count as completed", () => {
  const active = server("Active");
  assert.equal(stateAfter(server("New", false), []), "on");
  assert.equal(stateAfter(server("New", false), queue("Create")), "on");
  assert.equal(stateAfter(active, queue("PowerOff")), "off");
  assert.equal(stateAfter(active, queue("PowerOff", "PowerOn", "ShutDownGuestOS")), "off");
  assert.equal(stateAfter(server("Active", false), queue("Rebuild", "Resize", "AddNetwork")), "on");
  assert.equal(stateAfter(active, queue("PowerOn", "Delete")), "Deleting");
  assert.equal(stateAfter(server("Active", false), queue("server.snapshot")), "off");
});

test("a queued request is validated against the state after the queue", () => {
  assert.equal(requireRequest(server("Active"), queue("PowerOff"), "PowerOn"), "run");
  assert.equal(requireRequest(server("Active", false), queue("PowerOn"), "PowerOn"), "same");
  assert.equal(requireRequest(server("New", false), queue("Create"), "Resize"), "run");
  assert.throws(() => requireRequest(server("Active"), queue("PowerOff"), "PowerReboot"), {
    code: "action_not_allowed",
    message: "Server 17 will then be Active and off: PowerReboot is not possible.",
  });
});

test("OnBusy Fail rejects a busy server", () => {
  const busy = () => requireRequest(server("Active"), queue("Resize"), "PowerOff", "Fail");
  assert.throws(busy, { code: "server_busy", message: "Action 50 (Resize) of server 17 is running." });
  assert.equal(requireRequest(server("Active"), [], "PowerOff", "Fail"), "run");
  assert.throws(() => requireRequest(server("Failed"), queue("Resize"), "PowerOff", "Fail"), {
    code: "action_not_allowed",
  });
});

test("twenty actions can be queued behind the running one; a deletion is not queued", () => {
  const twenty = queue(...Array.from({ length: 20 }, () => "AddNetwork"));
  assert.equal(requireRequest(server("Active"), twenty, "PowerOff"), "run");
  const more = [...twenty, ...queue("AddNetwork")];
  assert.throws(() => requireRequest(server("Active"), more, "PowerOff"), { code: "queue_full" });
  assert.equal(requireRequest(server("Active"), more, "Delete", "Fail"), "now");
});

test("flows have the names of their actions; other flows have no type", () => {
  for (const type of actionTypes) assert.equal(actionTypeOf(flowName(type)), type);
  assert.equal(actionTypeOf("server.snapshot"), null);
  assert.equal(actionTypeOf("network.edge"), null);
});

test("PowerOff depends only on the running action, and ignores a full queue", () => {
  const busy = Array.from({ length: 30 }, (_, place) => ({ id: place + 1, name: "server.PowerReboot" }));
  requirePowerOff(server("Active"), busy);
  assert.throws(() => requirePowerOff(server("Active"), busy, "Fail"), { code: "server_busy" });
  assert.throws(() => requirePowerOff(server("Blocked"), []), { code: "action_not_allowed" });
});

test("queued actions can be canceled, running ones if they can be undone, ended ones never", () => {
  const cancel =
    (name: string, state: string, undoing = false) =>
    () =>
      requireCancelable({ id: 55, name: `server.${name}`, state, undoing });
  for (const type of actionTypes) if (type !== "Delete") cancel(type, "Postponed")();
  assert.throws(cancel("Delete", "Postponed"), { code: "action_not_allowed" });
  cancel("Create", "InProgress")();
  assert.throws(cancel("Delete", "InProgress"), {
    code: "action_not_allowed",
    message: "Action 55 (Delete) is InProgress: it cannot be canceled.",
  });
  assert.throws(cancel("Create", "InProgress", true), { message: "Action 55 (Create) is being undone already." });
  for (const state of ["Completed", "Failed", "Canceled"])
    assert.throws(cancel("Create", state), { code: "action_not_allowed" });
});
