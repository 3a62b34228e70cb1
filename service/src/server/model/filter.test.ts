import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerLink } from "@brume/api/server.ts";
import { serverRow } from "../../../../test/support/rows.ts";
import { serverFilter } from "./filter.ts";

const link = (NetworkID: number, NetworkName: string, IP: string, IP6 = "") =>
  ({ NetworkID, NetworkName, IP, IP6 }) as ServerLink;
const servers: readonly (readonly [ReturnType<typeof serverRow>, readonly ServerLink[]])[] = [
  [serverRow(1, { batch_id: 4 }), [link(1, "Shared", "10.63.0.2")]],
  [serverRow(2, { location: "Far" }), [link(5, "DMZ", "10.64.0.10", "fd00::2"), link(6, "back", "172.16.0.2")]],
  [serverRow(3), []],
];
const found = (filters: Parameters<typeof serverFilter>[0]) => {
  const fits = serverFilter(filters);
  return servers.filter(([row, links]) => fits(row, links)).map(([{ id }]) => id);
};

test("each filter selects its values, and filters are joined by AND", () => {
  assert.deepEqual(found({}), [1, 2, 3]);
  assert.deepEqual(found({ batch: 4 }), [1]);
  assert.deepEqual(found({ location: "far" }), [2]);
  assert.deepEqual(found({ location: "Local, FAR" }), [1, 2, 3]);
  assert.deepEqual(found({ network: "dmz" }), [2]);
  assert.deepEqual(found({ network: "1,6" }), [1, 2]);
  assert.deepEqual(found({ ip: "172.16.0.2" }), [2]);
  assert.deepEqual(found({ ip: "FD00::2,10.63.0.2" }), [1, 2]);
  assert.deepEqual(found({ location: "far", network: "shared" }), []);
  for (const nothing of [{ location: "" }, { network: "," }, { ip: "10.63.0" }]) assert.deepEqual(found(nothing), []);
});
