import assert from "node:assert/strict";
import { test } from "node:test";
import { Action } from "@brume/api/action.ts";
import { Batch } from "@brume/api/batch.ts";
import { Server, type ServerLink } from "@brume/api/server.ts";
import type { TObject } from "typebox";
import { created, keyRow, serverRow } from "../../../../test/support/rows.ts";
import { type ActionTask, showAction, showBatch, showServer, withoutSecrets } from "./show.ts";

const link: ServerLink = {
  LinkID: 31,
  NetworkID: 1,
  LinkState: "Active",
  NetworkType: "PublicShared",
  NetworkName: "Shared",
  IP: "10.63.0.2",
  MAC: "02:42:00:00:00:1f",
  Mask: "255.255.0.0",
  Gateway: "10.63.0.1",
  Bandwidth: 100,
  IP6: "",
};
const around = { links: [link], keys: [keyRow(7)], password: "k7Rw2mQx9TzB4nLc", isOn: true };
const keysOf = (schema: TObject) => Object.keys(schema.properties);

test("a server is shown exactly as in the specification, newer fields before Labels", () => {
  const row = serverRow(17, { labels: '{"env":"prod"}' });
  assert.equal(
    JSON.stringify(showServer(row, around)),
    '{"ID":17,"Name":"web-1","HostName":"web-1","State":"Active","IsPowerOn":true,"CPU":1,"RAM":512,"HDD":10,"IP":"10.63.0.2","AdminUserName":"root","AdminPassword":"k7Rw2mQx9TzB4nLc","Image":"brume-tiny","IsHighPerformance":false,"HDDType":"SSD","PrimaryNetworkIp":"10.63.0.2","LinkedNetworks":[{"LinkID":31,"NetworkID":1,"LinkState":"Active","NetworkType":"PublicShared","NetworkName":"Shared","IP":"10.63.0.2","MAC":"02:42:00:00:00:1f","Mask":"255.255.0.0","Gateway":"10.63.0.1","Bandwidth":100,"IP6":""}],"DCLocation":"Local","ImageFamily":"Linux","LinkedSshKeys":[{"ID":7,"Title":"laptop","PublicKey":"AAAAC3NzaC1lZDI1NTE5AAAAIE3p6k3o0o3p0l7mYw2bq1Xn4rZ8t5v9cQ1sD2fG3hJ4","IsActive":true,"Type":"ssh-ed25519","Comment":"ann@laptop","Fingerprint":"SHA256:VuHrq6jTQnl9j+L3P2O5jpsrgwlEQgqP3g/sycoSk10","DateCreate":"2026-11-20T09:15:00.120Z","Labels":{}}],"DateCreate":"2026-11-20T09:15:00.120Z","ImageID":1,"BatchID":null,"IsProtected":false,"Error":null,"isBackupActive":false,"BackupPeriod":7,"Condition":"Normal","Crashes":0,"Labels":{"env":"prod"}}',
  );
  assert.deepEqual(Object.keys(showServer(row, around)), keysOf(Server));
});

test("IP is the first non-private address, PrimaryNetworkIp the first of all; both are empty without links", () => {
  const inner: ServerLink = { ...link, LinkID: 30, NetworkType: "PrivateClient", IP: "172.16.0.2" };
  const both = showServer(serverRow(17), { ...around, links: [inner, link] });
  assert.deepEqual([both.IP, both.PrimaryNetworkIp], ["10.63.0.2", "172.16.0.2"]);
  const none = showServer(serverRow(17, { state: "Failed" }), { ...around, links: [] });
  assert.deepEqual([none.IP, none.PrimaryNetworkIp, none.LinkedNetworks], ["", "", []]);
});

test("the name of the administrator depends on the family", () => {
  const adminOf = (family: "Linux" | "Bsd" | "Windows") => showServer(serverRow(1, { family }), around).AdminUserName;
  assert.deepEqual([adminOf("Linux"), adminOf("Bsd"), adminOf("Windows")], ["root", "root", "Administrator"]);
});

test("an error shows the reason and the last output of the VM", () => {
  const error = {
    code: "boot_failed",
    title: "The server did not start.",
    detail: "No disk.",
    step: "Boot",
    log: "panic\n",
  };
  const shown = showServer(serverRow(17, { state: "Failed", error: JSON.stringify(error) }), around);
  assert.deepEqual(shown.Error, {
    type: "/docs#boot_failed",
    title: "The server did not start.",
    detail: "No disk.",
    code: "boot_failed",
    step: "Boot",
    log: "panic\n",
  });
});

test("servers in events contain no secret", () => {
  assert.ok(!JSON.stringify(withoutSecrets(showServer(serverRow(17), around))).includes(around.password));
});

const step = (name: string, more: Partial<ActionTask["steps"][number]> = {}) =>
  ({ name, state: "Pending", start: null, end: null, detail: "", ...more }) as const;
const task = (more: Partial<ActionTask> = {}): ActionTask => ({
  id: 55,
  name: "server.AddNetwork",
  subject: { id: 17 },
  state: "InProgress",
  start: created,
  end: null,
  progress: 50,
  steps: [
    step("Reserve", { state: "Completed", start: created, end: created, detail: "10.64.0.10 on network 5" }),
    step("Plug", { state: "InProgress", start: created }),
  ],
  error: null,
  ...more,
});

test("an action is shown exactly as in the specification", () => {
  assert.equal(
    JSON.stringify(showAction(task())),
    '{"ID":55,"Type":"AddNetwork","State":"InProgress","StartDate":"2026-11-20T09:15:00.120Z","EndDate":null,"ServerID":17,"Progress":50,"Steps":[{"Name":"Reserve","State":"Completed","StartDate":"2026-11-20T09:15:00.120Z","EndDate":"2026-11-20T09:15:00.120Z","Detail":"10.64.0.10 on network 5"},{"Name":"Plug","State":"InProgress","StartDate":"2026-11-20T09:15:00.120Z","EndDate":null,"Detail":""}],"Error":null}',
  );
  assert.deepEqual(Object.keys(showAction(task()) ?? {}), keysOf(Action));
  assert.equal(showAction(task({ name: "server.snapshot" })), null);
});

test("an error is shown when it has ended the action; that of a deletion at once", () => {
  const error = {
    code: "disk_failed" as const,
    title: "The disk could not be prepared.",
    detail: "Full.",
    step: "Disk",
  };
  const codeOf = (more: Partial<ActionTask>) => showAction(task({ error, ...more }))?.Error?.code;
  assert.equal(codeOf({}), undefined);
  assert.equal(codeOf({ name: "server.Delete" }), "disk_failed");
  for (const state of ["Failed", "Canceled"] as const) assert.equal(codeOf({ state, end: created }), "disk_failed");
});

test("a group has its servers in order", () => {
  const row = { id: 4, project_id: 1, policy: "Atomic", state: "New", errors: "[]", created } as const;
  const servers = [19, 20].map((id) => showServer(serverRow(id, { batch_id: 4 }), around));
  const shown = showBatch(row, servers);
  assert.deepEqual(Object.keys(shown), keysOf(Batch));
  assert.deepEqual(shown, { ID: 4, Policy: "Atomic", State: "New", Servers: servers, Errors: [] });
});
