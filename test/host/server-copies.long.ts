/**
 * Copies and rebuilds of a real server, checked from inside the guest: servers from a copy or an image have the files and a new
 * identity, a rebuild is the same server without the files, and a backup restores them.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { until } from "../support/waituntil.ts";
import { actionTimeout, createServerHost, hindrance, type ServerHost, type Traces } from "./serverhost.ts";

if (hindrance !== null) console.log(`copies of servers: not tried, ${hindrance}`);

describe("copies of a server", { skip: hindrance ?? false, concurrency: false }, () => {
  let host: ServerHost;
  let initial: Traces;
  let source: Server;
  let copy: Server;
  let child: Server;
  let image: number;
  let backup: number;
  before(async () => {
    host = await createServerHost();
    initial = await host.traces();
  });
  after(() => host?.close());

  const commands = {
    machine: "cat /etc/machine-id",
    hostKey: "dropbearkey -y -f /etc/dropbear/host_key | grep ^ssh",
    name: "hostname",
  };
  /** Returns the values that identify a server. */
  const identify = async (server: Server): Promise<Readonly<Record<string, string>>> => {
    const [machine = "", hostKey = "", name = ""] = (
      await host.run(server.IP, Object.values(commands).join("; "))
    ).split("\n");
    const { ID, IP, AdminPassword } = server;
    return { machine, hostKey, name, id: String(ID), IP, AdminPassword, MAC: server.LinkedNetworks[0]?.MAC ?? "" };
  };
  const assertOther = (one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>) => {
    for (const [key, value] of Object.entries(one)) assert.notEqual(value, other[key], key);
    assert.match(one["machine"] ?? "", /^[0-9a-f]{32}$/);
    assert.match(one["hostKey"] ?? "", /^ssh-ed25519 /);
  };
  const diskVersions = (id: number) =>
    readdirSync(join(host.brume.folder, "servers", String(id))).filter((name) => name.startsWith("disk-"));
  /** Returns whether a file of the disk contains the text; the files are not compressed. */
  const contains = (id: number, disk: string, text: string) => {
    const folder = join(host.brume.folder, "servers", String(id), disk);
    return readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(text));
  };

  test("a copy, and a server from an image, have the files and a new identity", async () => {
    const { client } = host;
    source = await host.create({ Name: "source" });
    await host.run(source.IP, "echo mine >/root/file; echo first >/root/moment; sync");
    const boot = await host.run(source.IP, "cat /proc/sys/kernel/random/boot_id");

    const spec = { Name: "copy", WaitFor: "Ssh" as const };
    const copied = await client.copyServer({ path: { id: source.ID }, body: spec });
    const made = await client.createImage({ body: { Name: "mine", ServerID: source.ID } });
    image = made.ID;
    const {
      State,
      Error: error,
      Hdd,
    } = await client.waitFor("readImage", { path: { id: image } }, { timeout: actionTimeout });
    assert.deepEqual([State, error, Hdd], ["Active", null, 1]);
    await host.run(source.IP, "echo second >/root/moment");
    const [created] = await Promise.all([
      host.create({ Name: "child", ImageID: String(image) }),
      host.lastAction(copied.ID),
    ]);
    assert.equal((await host.lastAction(copied.ID)).State, "Completed");
    copy = await host.read(copied.ID);
    child = created;

    const [old, ...others] = await Promise.all([source, copy, child].map(identify));
    const [first, second] = others;
    assert.ok(old && first && second);
    assertOther(first, old);
    assertOther(second, old);
    assertOther(first, second);
    assert.equal(first["name"], "copy");
    for (const server of [copy, child]) {
      assert.equal(await host.run(server.IP, "cat /root/file /root/moment"), "mine\nfirst");
      assert.equal(await host.ssh(server.IP, "id -un", { password: server.AdminPassword }), "root");
      assert.equal(await host.ssh(server.IP, "id -un", { password: source.AdminPassword }), null);
    }
    assert.equal(await host.run(source.IP, "cat /proc/sys/kernel/random/boot_id"), boot, "the source was left alone");
  });

  test("a rebuild wipes the disk and keeps the server's addresses", async () => {
    const before = await identify(copy);
    await host.run(copy.IP, "echo SECRET-OF-BEFORE >/root/secret; sync");
    const isThere = () => diskVersions(copy.ID).some((disk) => contains(copy.ID, disk, "SECRET-OF-BEFORE"));
    assert.ok(isThere());
    const answered = await host.client.rebuildServer({ path: { id: copy.ID }, body: { ImageId: "1", WaitFor: "Ssh" } });
    assert.equal((await host.lastAction(copy.ID)).State, "Completed");
    const rebuilt = await host.read(copy.ID);
    assert.equal(rebuilt.AdminPassword, answered.AdminPassword);
    const { id, IP, MAC, name, ...others } = await identify(rebuilt);
    assert.deepEqual(
      { id, IP, MAC, name },
      { id: before["id"], IP: before["IP"], MAC: before["MAC"], name: before["name"] },
    );
    for (const [key, value] of Object.entries(others)) assert.notEqual(value, before[key], key);
    assert.equal(await host.run(IP ?? "", "ls -A /root"), ".ssh");
    await until("the old disk is gone", async () => diskVersions(copy.ID).length === 1);
    assert.ok(!isThere(), "not even on the raw disk");
    copy = rebuilt;
  });

  test("a backup is made while the server runs, and a rebuild restores it", async () => {
    await host.client.updateServer({ path: { id: source.ID }, body: { isBackupActive: true } });
    const pid = host.pidOf(source.ID);
    // Due backups are found at the start of the service.
    await host.brume.end("SIGTERM");
    await host.brume.start();
    const made = await until("a backup", async () =>
      (await host.client.listImages()).find(({ Type, State }) => Type === "Backup" && State === "Active"),
    );
    backup = made.ID;
    assert.equal(made.ServerID, source.ID);
    assert.equal(host.pidOf(source.ID), pid, "servers live on without a service");
    await host.run(source.IP, "rm /root/file; sync");
    await host.client.rebuildServer({ path: { id: source.ID }, body: { ImageId: String(backup), WaitFor: "Ssh" } });
    assert.equal((await host.lastAction(source.ID)).State, "Completed");
    assert.equal(await host.run(source.IP, "cat /root/file /root/moment"), "mine\nsecond");
  });

  test("copies and images outlive the server", async () => {
    await host.delete(source.ID);
    for (const id of [image, backup]) await host.client.deleteImage({ path: { id } });
    await until("the images are gone", async () => (await host.traces()).images.join() === initial.images.join());
    assert.equal(await host.run(child.IP, "cat /root/file"), "mine");
    const reset = await host.act(child.ID, { Type: "PowerReboot", WaitFor: "Ssh" });
    assert.equal(reset.State, "Completed", JSON.stringify(reset));
    assert.equal(
      await host.run(child.IP, "cat /root/file; md5sum /bin/busybox >/dev/null && echo whole"),
      "mine\nwhole",
    );
    for (const { ID } of [copy, child]) await host.delete(ID);
    assert.deepEqual(await host.traces(), initial);
    assert.deepEqual(
      host.brume.log.filter(({ level }) => level > 30),
      [],
    );
  });
});
