import assert from "node:assert/strict";
import { test } from "node:test";
import { type ActionInput, requestTypes } from "@brume/api/action.ts";
import { created, networkRow } from "../../../../test/support/rows.ts";
import { checkActionInput, chooseLink, requireAttachable } from "./actioninput.ts";

const entriesOf = (body: Partial<ActionInput>) =>
  checkActionInput(body).map(({ pointer, code }) => `${pointer} ${code}`);

test("each type requires its own fields and ignores the others", () => {
  const needed: Partial<Record<ActionInput["Type"], string[]>> = {
    AddNetwork: ["/NetworkID field_required"],
    RemoveNetwork: ["/NetworkID field_required"],
    EditNetworkBandwidth: ["/NetworkID field_required", "/Bandwidth field_required"],
  };
  for (const Type of requestTypes) assert.deepEqual(entriesOf({ Type }), needed[Type] ?? [], Type);
  assert.deepEqual(entriesOf({ Type: "AddNetwork", NetworkLinkID: 3 }), ["/NetworkID field_required"]);
  assert.deepEqual(entriesOf({ Type: "RemoveNetwork", NetworkLinkID: 3 }), []);
  assert.deepEqual(entriesOf({ Type: "EditNetworkBandwidth", NetworkLinkID: 3, Bandwidth: 1 }), []);
  assert.deepEqual(entriesOf({ Type: "AddNetwork", NetworkID: 5, IP: "10.0.0" }), ["/IP format_invalid"]);
  assert.deepEqual(entriesOf({ Type: "AddNetwork", NetworkID: 5, IP: "" }), []);
  assert.deepEqual(entriesOf({ Type: "PowerOn", IP: "nowhere" }), []);
  // A type that was refused already.
  assert.deepEqual(entriesOf({}), []);
});

const linkRow = (id: number, network_id: number) =>
  ({
    id,
    network_id,
    server_id: 17,
    host_name: "web-1",
    ip: "0a40000a",
    bandwidth: 100,
    state: "Active",
    created,
  }) as const;
const links = [linkRow(31, 1), linkRow(32, 5)];

test("a link is selected by its id, by its network, or by both", () => {
  const idOf = (order: Parameters<typeof chooseLink>[0]) => chooseLink(order, 17, links).id;
  assert.equal(idOf({ NetworkID: 5 }), 32);
  assert.equal(idOf({ NetworkLinkID: 31 }), 31);
  assert.equal(idOf({ NetworkLinkID: 32, NetworkID: 5 }), 32);
  const cases = [
    [{ NetworkID: 6 }, "Server 17 has no link to network 6."],
    [{ NetworkLinkID: 33 }, "Server 17 has no link 33."],
    [{ NetworkLinkID: 31, NetworkID: 5 }, "Server 17 has no link 31 to network 5."],
  ] as const;
  for (const [order, message] of cases) assert.throws(() => idOf(order), { code: "not_linked", message });
});

test("a server can be linked to an existing network of its location that overlaps none of its networks", () => {
  const server = { id: 17, location: "Local" };
  const dmz = networkRow(5);
  const back = networkRow(6, { kind: "private", first: "ac100000", last: "ac1000ff" });
  const join = (network: typeof dmz | undefined, ...present: (typeof dmz)[]) =>
    requireAttachable({ id: network?.id ?? 99, network }, server, present);
  assert.equal(join(dmz), dmz);
  assert.equal(join(dmz, back), dmz);
  assert.throws(() => join(undefined), { code: "validation_failed" });
  assert.throws(() => join(networkRow(5, { location: "Far" })), { code: "location_mismatch" });
  assert.throws(() => join(networkRow(5, { state: "Deleting" })), { code: "network_deleting" });
  assert.throws(() => join(dmz, back, dmz), { code: "already_linked" });
  const within = networkRow(7, { kind: "private", first: "ac100080", last: "ac10008f" });
  for (const [one, other] of [
    [within, back],
    [back, within],
  ] as const)
    assert.throws(() => join(one, other), { code: "range_overlap" });
});
