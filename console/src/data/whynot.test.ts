import assert from "node:assert/strict";
import { test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { en } from "../texts/en.ts";
import { whyNot } from "./whynot.ts";

const server = (part: Partial<Server>): Server =>
  ({ State: "Active", IsPowerOn: true, IsProtected: false, Condition: "Normal", ...part }) as Server;

test("an action that is not possible has a sentence with what to do first", () => {
  const off = server({ IsPowerOn: false });
  assert.equal(whyNot(off, "PowerReboot", en), "The server is off. Power it on first.");
  assert.equal(whyNot(off, "PowerOff", en), "The server is already off.");
  assert.equal(whyNot(off, "PowerOn", en), undefined);
  assert.equal(whyNot(server({}), "PowerOn", en), "The server already runs.");
  assert.equal(whyNot(server({ State: "New" }), "PowerOn", en), en.servers.notNow.New);
  assert.equal(whyNot(server({ State: "Failed" }), "Copy", en), en.servers.notNow.Failed);
  assert.equal(whyNot(server({ IsProtected: true }), "Delete", en), en.server.deleteProtected);
});
