import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerCopy, ServerRebuild } from "@brume/api/serverinput.ts";
import { imageRow, keyRow, networkRow, references, serverRow, serverSpec } from "../../../../test/support/rows.ts";
import { copyName, planCopy } from "./copy.ts";
import { planRebuild, requireUnprotected } from "./rebuild.ts";

const sizes = { cpu: 2, ram: 1024, hdd: 20, fast: true };
const server = serverRow(17, {
  labels: '{"env":"prod"}',
  is_protected: 1,
  is_backup_active: 1,
  backup_period: 14,
  image_id: 99,
});
const copy = (body: ServerCopy = {}, more = {}) =>
  planCopy(body, { server, sizes, keys: [keyRow(7, { title: "as it was" })] }, references(more));

test("a copy has the future sizes of its source, another name, and no protection or backups", () => {
  const expected = {
    name: "web-1-copy",
    hostName: "web-1-copy",
    ...sizes,
    image: { id: 99, name: "brume-tiny", family: "Linux", guest: "tiny" },
    keys: [keyRow(7, { title: "as it was" })],
    backupPeriod: 14,
    labels: { env: "prod" },
  } as const;
  assert.deepEqual(copy(), { ...serverSpec(), ...expected });
});

test("fields of the body override the source", () => {
  const made = copy({
    Name: "web-2",
    NetworkId: 5,
    SshKeys: [8],
    Labels: {},
    UserData: "#!x",
    WaitFor: "Guest",
    NetworkBandwidth: 5,
  });
  assert.deepEqual(
    [made.name, made.hostName, made.network?.id, made.keys, made.labels],
    ["web-2", "web-2", 5, [keyRow(8)], {}],
  );
  assert.deepEqual([made.userData, made.waitFor, made.bandwidth], ["#!x", "Guest", 5]);
  assert.deepEqual(copy({ SshKeys: [] }).keys, []);
});

test("a long name is shortened for -copy, between characters", () => {
  assert.equal(copyName("a".repeat(64)), `${"a".repeat(59)}-copy`);
  assert.equal(Array.from(copyName("😀".repeat(64))).length, 64);
});

test("a copy is validated like a new server", () => {
  const errorsOf = (body: ServerCopy) => (error: unknown) => {
    const { errors } = error as { errors: { pointer: string }[] };
    assert.deepEqual(
      errors.map(({ pointer }) => pointer),
      Object.keys(body).map((field) => (field === "SshKeys" ? "/SshKeys/0" : `/${field}`)),
    );
    return true;
  };
  const body = { NetworkIP: "x", NetworkId: 99, SshKeys: [99] };
  assert.throws(() => copy(body), errorsOf(body));
  const far = { networks: [networkRow(5, { location: "Far" }), networkRow(6, { state: "Deleting" })] };
  assert.throws(() => copy({ NetworkId: 5 }, far), { code: "location_mismatch" });
  assert.throws(() => copy({ NetworkId: 6 }, far), { code: "network_deleting" });
});

const rebuild = (body: ServerRebuild = {}, more: object = {}, row = serverRow(17)) =>
  planRebuild(body, row, sizes, references(more));

test("a rebuild keeps image, keys and user data unless the body contains others", () => {
  assert.deepEqual(rebuild(), { image: imageRow(1), keys: null, userData: undefined });
  assert.deepEqual(rebuild({ ImageId: "0", SshKeys: [], UserData: "" }), {
    image: imageRow(1),
    keys: [],
    userData: null,
  });
  assert.deepEqual(rebuild({ ImageId: "debian-12", SshKeys: [7], UserData: "x" }), {
    image: imageRow(2),
    keys: [keyRow(7)],
    userData: "x",
  });
  const windows = { images: [imageRow(3, { family: "Windows" })] };
  assert.deepEqual(rebuild({ ImageId: "3" }, windows).keys, []);
});

test("a rebuild needs an image that fits the sizes and the location", () => {
  const of = (more: object) => () =>
    rebuild({ ImageId: "9" }, { locations: ["Local", "Far"], images: [imageRow(9, more)] });
  assert.throws(of({ project_id: 1, type: "Client", state: "New" }), { code: "image_not_ready" });
  assert.throws(of({ location: "Far" }), { code: "location_mismatch" });
  assert.throws(of({ hdd: 21 }), { code: "disk_too_small", message: /needs 21 GB, the disk has 20 GB/ });
  assert.throws(of({ min_ram: 2048 }), { code: "validation_failed" });
  // Its own image is gone.
  assert.throws(() => rebuild({}, {}, server), { code: "validation_failed" });
});

test("a protected server is not rebuilt", () => {
  assert.throws(() => requireUnprotected(server), { code: "server_protected" });
  requireUnprotected(serverRow(17));
});
