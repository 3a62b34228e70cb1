/** The life cycle of a server (docs/spec.md#server, #server-states, #server-endpoints), part 1: creation and changes. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onEveryDatabase, refused } from "../support/harness.ts";
import {
  createServerApiFixture,
  debian,
  type ServerApiFixture,
  stepsOf,
  windows,
} from "../support/serverapifixture.ts";
import { tiny } from "../support/testservice.ts";

const key = (byte: number) =>
  `ssh-ed25519 ${Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, byte)]).toString("base64")} ann@laptop`;
const path = ({ ID }: { readonly ID: number }) => ({ id: ID });

onEveryDatabase(
  "servers",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });

    describe("creation", () => {
      test("the response contains the addresses, and the action shows the progress", async () => {
        const laptop = await harness.client.createSshKey({ body: { Title: "laptop", PublicKey: key(1) } });
        const made = await harness.client.createServer({
          body: { Name: "Web 1", SshKeys: [laptop.ID], Labels: { env: "prod" }, UserData: "#!/bin/sh\n" },
        });
        const [link] = made.LinkedNetworks;
        assert.ok(link);
        assert.match(made.AdminPassword, /^[A-Za-z0-9]{16}$/);
        assert.match(link.MAC, /^02(:[0-9a-f]{2}){5}$/);
        const { AdminPassword, DateCreate, ...rest } = made;
        assert.deepEqual(rest, {
          ID: made.ID,
          Name: "Web 1",
          HostName: "web-1",
          State: "New",
          IsPowerOn: false,
          CPU: 1,
          RAM: 512,
          HDD: 10,
          IP: link.IP,
          AdminUserName: "root",
          Image: "brume-tiny",
          IsHighPerformance: false,
          HDDType: "SSD",
          PrimaryNetworkIp: link.IP,
          LinkedNetworks: [
            {
              LinkID: link.LinkID,
              NetworkID: link.NetworkID,
              LinkState: "New",
              NetworkType: "PublicShared",
              NetworkName: "Shared",
              IP: "10.63.0.2",
              MAC: link.MAC,
              Mask: "255.255.0.0",
              Gateway: "10.63.0.1",
              Bandwidth: 100,
              IP6: "",
            },
          ],
          DCLocation: "Local",
          ImageFamily: "Linux",
          LinkedSshKeys: [laptop],
          ImageID: 1,
          BatchID: null,
          IsProtected: false,
          Error: null,
          isBackupActive: false,
          Condition: "Normal",
          Crashes: 0,
          BackupPeriod: 7,
          Labels: { env: "prod" },
        });
        const now = await fixture.read(made.ID, ({ State }) => State !== "New");
        assert.deepEqual(now, {
          ...made,
          State: "Active",
          IsPowerOn: true,
          LinkedNetworks: [{ ...link, LinkState: "Active" }],
        });
        assert.ok(AdminPassword && DateCreate);
        const [action] = await fixture.actions(made.ID);
        assert.ok(action);
        assert.deepEqual([action.Type, action.State, action.Progress], ["Create", "Completed", 100]);
        assert.deepEqual(
          action.Steps.map(({ Name, Detail }) => [Name, Detail]),
          [
            ["Reserve", `10.63.0.2 on network ${link.NetworkID}`],
            ["Disk", "10 GB from brume-tiny"],
            ["Network", ""],
            ["Boot", "power on"],
          ],
        );
        const { machines } = await harness.brume.machines.observe();
        const machine = machines.find(({ id }) => id === made.ID);
        assert.deepEqual(
          [machine?.power, machine?.cpus, machine?.memory, machine?.disks[0]?.gb],
          ["running", 1, 512, 10],
        );
      });

      test("defaults follow the image, the name and the network", async () => {
        const inner = await harness.client.createNetwork({ body: { Name: "inner", DCLocation: "Far" } }, { wait: 60 });
        const made = await fixture.server({ Name: "Бюро!", ImageID: "windows", NetworkID: inner.ID });
        const { HostName, RAM, HDD, AdminUserName, ImageFamily, DCLocation, IP, PrimaryNetworkIp, LinkedNetworks } =
          made;
        assert.deepEqual(
          [HostName, RAM, HDD, AdminUserName, ImageFamily, DCLocation, IP, PrimaryNetworkIp],
          [`server-${made.ID}`, 1024, 10, "Administrator", "Windows", "Far", "", "172.16.0.1"],
        );
        assert.deepEqual([LinkedNetworks[0]?.NetworkType, LinkedNetworks[0]?.Bandwidth], ["PrivateClient", 1000]);
        const far = await fixture.server({ DCLocation: "far" });
        assert.deepEqual([far.DCLocation, far.IP], ["Far", "10.62.0.2"]);
        const shared = far.LinkedNetworks[0]?.NetworkID ?? 0;
        const named = await fixture.server({ NetworkID: shared });
        assert.deepEqual(
          [named.DCLocation, named.IP, named.LinkedNetworks[0]?.NetworkID],
          ["Far", "10.62.0.3", shared],
        );
      });

      test("fields of other clouds that existing clients send are accepted and ignored", async () => {
        const body = { Name: "x", IsNeedSysprep: "q" };
        for (const headers of [{}, { Prefer: "handling=strict" }])
          assert.equal((await harness.request("POST /server?dryRun=true", body, headers)).status, 200);
      });

      test("a missing operator image is downloaded during creation", async () => {
        const listed = await harness.client.listImages({ query: { name: debian.name } });
        assert.equal(listed[0]?.State, "Available");
        const made = await fixture.server({ ImageID: debian.name });
        assert.deepEqual([made.Image, made.ImageID], [debian.name, listed[0]?.ID]);
        assert.equal((await harness.client.readImage({ path: { id: made.ImageID } })).State, "Active");
      });

      test("all errors of a request are reported at once", async () => {
        await refused(
          harness.client.createServer({
            body: { Name: "x", ImageID: "none", SshKeys: [99], NetworkID: 99, DCLocation: "Mars", NetworkIP: "here" },
          }),
          "validation_failed",
          // Formats are checked before references.
          { "/NetworkIP": "format_invalid" },
        );
        await refused(
          harness.client.createServer({
            body: { Name: "x", ImageID: "none", SshKeys: [99], NetworkID: 99, DCLocation: "Mars" },
          }),
          "validation_failed",
          {
            "/ImageID": "unknown_reference",
            "/SshKeys/0": "unknown_reference",
            "/NetworkID": "unknown_reference",
            "/DCLocation": "unknown_reference",
          },
        );
        const small = { Name: "x", ImageID: "windows", RAM: 512 };
        await refused(harness.client.createServer({ body: small }), "validation_failed", { "/RAM": "out_of_range" });
        await refused(
          harness.client.createServer({ body: { Name: "x", ImageID: "windows", HDD: 2 } }),
          "disk_too_small",
        );
      });

      test("a VM that does not start leaves only the error", async () => {
        harness.brume.machines.fail("ensureDisk", 100);
        await fixture.newEvents();
        const made = await harness.client.createServer({ body: { Name: "unlucky" } });
        const [creating] = await fixture.actions(made.ID);
        assert.ok(creating);
        // The test does not wait for five attempts: a canceled create is undone like a failed one.
        const cancelled = await harness.client.cancelAction({ path: { id: made.ID, actionID: creating.ID } });
        assert.equal(cancelled.ID, creating.ID);
        const action = await fixture.ended(creating);
        harness.brume.machines.fail("ensureDisk", 0);
        assert.deepEqual([action.State, action.Error?.code], ["Canceled", "superseded"]);
        const failed = await fixture.read(made.ID, ({ State }) => State !== "New");
        assert.deepEqual([failed.State, failed.LinkedNetworks, failed.IP, failed.IsPowerOn], ["Failed", [], "", false]);
        assert.equal(failed.Error?.code, "superseded");
        await refused(
          harness.client.startAction({ path: path(made), body: { Type: "PowerOn" } }),
          "action_not_allowed",
        );
        await fixture.remove(made.ID);
        await refused(harness.client.readServer({ path: path(made) }), "server_not_found");
      });

      test("a restart of the service in the middle changes nothing", async () => {
        const release = harness.brume.machines.hold("ensureDisk");
        const made = await harness.client.createServer({ body: { Name: "patient" } });
        const waiting = await fixture.order(made.ID, { Type: "PowerOff" });
        assert.equal(waiting.State, "Postponed");
        const restarted = harness.brume.restart();
        release();
        await restarted;
        assert.equal((await fixture.ended(waiting)).State, "Completed");
        const now = await fixture.read(made.ID, ({ IsPowerOn }) => !IsPowerOn);
        assert.deepEqual([now.State, now.IP], ["Active", made.IP]);
      });
    });

    describe("safe requests", () => {
      test("a dry run returns the result and has no effect", async () => {
        const body = { Name: "dry", Labels: { a: "b" } };
        await fixture.newEvents();
        const was = await harness.client.listServers();
        const dry = await harness.client.createServer({ body }, { dryRun: true });
        assert.deepEqual([dry.ID, dry.State, dry.AdminPassword, dry.LinkedNetworks[0]?.LinkID], [0, "New", "", 0]);
        const [first] = was;
        assert.ok(first);
        const action = await harness.client.updateServer(
          { path: path(first), body: { HDD: 20, Name: "no" } },
          { dryRun: true },
        );
        assert.deepEqual([action.ID, action.Type], [0, "Resize"]);
        await harness.client.deleteServer({ path: path(first) }, { dryRun: true });
        await harness.client.rebuildServer({ path: path(first), body: {} }, { dryRun: true });
        await harness.client.copyServer({ path: path(first), body: {} }, { dryRun: true });
        assert.deepEqual([await harness.client.listServers(), await fixture.newEvents()], [was, []]);
        const real = await harness.client.createServer({ body });
        const plain = (one: Server) => ({
          ...one,
          ID: 0,
          AdminPassword: "",
          DateCreate: "",
          LinkedNetworks: one.LinkedNetworks.map((link) => ({ ...link, LinkID: 0, MAC: "" })),
        });
        assert.deepEqual(plain(dry), plain(real));
      });

      test("a repeat with the same key returns the same server", async () => {
        const headers = { "Idempotency-Key": "server-1" };
        const first = await harness.request("POST /server", { Name: "once" }, headers);
        const again = await harness.request("POST /server", { Name: "once" }, headers);
        assert.deepEqual([again.text, again.headers.get("idempotency-replayed")], [first.text, "true"]);
        const { ID } = first.json as Server;
        const now = await harness.request("POST /server", { Name: "once" }, { ...headers, Prefer: "wait=20" });
        assert.deepEqual([(now.json as Server).ID, (now.json as Server).State], [ID, "Active"]);
        assert.equal((await harness.client.listServers({ query: { name: "once" } })).length, 1);
      });

      test("passwords are visible only with the write scope, and in no event and no audit", async () => {
        const made = await fixture.server();
        const reader = await harness.as(["server:read"]);
        assert.equal((await reader.client.readServer({ path: path(made) })).AdminPassword, "");
        assert.ok((await reader.client.listServers()).every(({ AdminPassword }) => AdminPassword === ""));
        assert.equal((await harness.client.readServer({ path: path(made) })).AdminPassword, made.AdminPassword);
        const logged = JSON.stringify([
          await harness.client.listEvents({ query: { limit: 1000 } }),
          await harness.client.listAudit(),
        ]);
        assert.ok(!logged.includes(made.AdminPassword));
      });

      test("lists are filtered", async () => {
        const made = await fixture.server({ Labels: { only: "me" }, DCLocation: "Far" });
        const find = async (query: object) => (await harness.client.listServers({ query })).map(({ ID }) => ID);
        const network = made.LinkedNetworks[0]?.NetworkID;
        assert.deepEqual(await find({ label: "only=me" }), [made.ID]);
        assert.deepEqual(await find({ ip: made.IP }), [made.ID]);
        assert.ok((await find({ location: "FAR", network: String(network), state: "active,new" })).includes(made.ID));
        assert.ok(!(await find({ location: "Local" })).includes(made.ID));
        assert.deepEqual(await find({ batch: 99 }), []);
      });
    });

    describe("changes", () => {
      test("fields that need no action change at once", async () => {
        const made = await fixture.server();
        const tag = async () => (await harness.client.raw.readServer({ path: path(made) })).etag ?? "";
        const was = await tag();
        const body = {
          Name: "renamed",
          Labels: { a: "" },
          IsProtected: true,
          HDDType: "HDD",
          isBackupActive: true,
        } as const;
        const action = await harness.client.updateServer({ path: path(made), body: { ...body, BackupPeriod: 14 } });
        assert.deepEqual([action.State, action.Steps, action.Progress], ["Completed", [], 100]);
        const now = await fixture.read(made.ID);
        const { Name, Labels, IsProtected, HDDType, isBackupActive, BackupPeriod, HostName } = now;
        assert.deepEqual(
          [Name, Labels, IsProtected, HDDType, isBackupActive, BackupPeriod, HostName],
          ["renamed", { a: "" }, true, "SAS", true, 14, made.HostName],
        );
        assert.notEqual(await tag(), was);
        await refused(harness.client.deleteServer({ path: path(made) }), "server_protected");
        await refused(harness.client.rebuildServer({ path: path(made), body: {} }), "server_protected");
        await refused(harness.client.updateServer({ path: path(made), body: {} }, { ifMatch: was }), "etag_mismatch");
      });

      test("a server that is sent back as read does not change, also in strict mode", async () => {
        const made = await fixture.server();
        const tag = (await harness.client.raw.readServer({ path: path(made) })).etag;
        const response = await harness.request(`PUT /server/${made.ID}`, made, { Prefer: "handling=strict" });
        assert.equal((response.json as { State: string }).State, "Completed", response.text);
        const now = await harness.client.raw.readServer({ path: path(made) });
        assert.deepEqual([now.answer, now.etag], [made, tag]);
        assert.deepEqual(
          (await fixture.actions(made.ID)).map(stepsOf).map(({ length }) => length),
          [0, 4],
        );
      });

      test("the state of the VM does not change the ETag", async () => {
        const made = await fixture.server();
        const tag = async () => (await harness.client.raw.readServer({ path: path(made) })).etag;
        const was = await tag();
        await fixture.act(made.ID, { Type: "PowerOff" });
        await fixture.act(made.ID, { Type: "PowerOn" });
        assert.equal(await tag(), was);
      });

      test("sizes grow without a restart if possible, else with one", async () => {
        const made = await fixture.server();
        const resize = (body: object) => harness.client.updateServer({ path: path(made), body }, { wait: 60 });
        const grown = await resize({ HDD: 20, IsHighPerformance: true });
        assert.deepEqual(stepsOf(grown), ["Cpu Completed", "Disk Completed"]);
        const restarted = await resize({ CPU: 2, RAM: 256 });
        assert.deepEqual(stepsOf(restarted), [
          "Stop Completed",
          "Cpu Completed",
          "Memory Completed",
          "Start Completed",
        ]);
        const { CPU, RAM, HDD, IsHighPerformance, IsPowerOn } = await fixture.read(made.ID);
        assert.deepEqual([CPU, RAM, HDD, IsHighPerformance, IsPowerOn], [2, 256, 20, true, true]);
        await refused(resize({ HDD: 10 }), "disk_cannot_shrink");
        await refused(resize({ CPU: 1, AllowRestart: false }), "restart_needed");
        await refused(resize({ CPU: 65, RAM: 100, HDD: 0 }), "validation_failed");
        await fixture.act(made.ID, { Type: "PowerOff" });
        assert.deepEqual(stepsOf(await resize({ CPU: 1, AllowRestart: false })), ["Cpu Completed"]);
        assert.equal((await fixture.read(made.ID)).IsPowerOn, false);
      });

      test("accepted sizes count before they are applied", async () => {
        const made = await fixture.server();
        const release = harness.brume.machines.hold("apply");
        const first = await harness.client.updateServer({ path: path(made), body: { HDD: 30 } });
        await refused(harness.client.updateServer({ path: path(made), body: { HDD: 29 } }), "disk_cannot_shrink");
        const { Usage } = await harness.client.readOwnProject();
        const held = (await harness.client.listServers()).reduce((sum, { HDD }) => sum + HDD, 0);
        release();
        assert.ok(Usage.HDD > held || (await fixture.read(made.ID)).HDD === 30);
        assert.equal((await fixture.ended(first)).State, "Completed");
      });
    });
  },
  {
    locations: ["Local", "Far"],
    machines: { images: [tiny, windows, debian].map(({ name }) => name), offered: [tiny, windows, debian] },
  },
);
