/** Webhooks (docs/spec.md#webhooks): events come signed, in order per resource, at least once, and a dead endpoint delays no other. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { verifySignature } from "@brume/api/signature.ts";
import type { Delivery, Webhook } from "@brume/api/webhook.ts";
import { maxWaiting } from "../../service/src/webhook/model/rules.ts";
import { type Caller, onEveryDatabase, refused } from "../support/harness.ts";
import { openEndpoint } from "../support/webhookendpoint.ts";

/** A clock that runs and that a test can set forward. */
let moved = 0;
const clock = { now: () => Date.now() + moved };
const hour = 3_600_000;

onEveryDatabase(
  "webhooks",
  (harness) => {
    const deliveriesOf = (
      caller: Caller,
      id: number,
      until: (all: readonly Delivery[]) => boolean,
    ): Promise<Delivery[]> => caller.client.waitFor("listDeliveries", { path: { id } }, { until, timeout: 120_000 });
    const untilState = (caller: Caller, id: number, state: Webhook["State"]): Promise<Webhook> =>
      caller.client.waitFor(
        "readWebhook",
        { path: { id } },
        { until: ({ State }) => State === state, timeout: 120_000 },
      );
    let names = 0;
    const domain = (caller: Caller) =>
      caller.client.createDomain({ body: { Name: `hook${++names}-${harness.kind}.example` } });

    test("deliver each event as it is listed, signed with the secret that was shown once", async () => {
      const caller = await harness.neighbour();
      const endpoint = await openEndpoint();
      const made = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["domain.*"] } });
      assert.match(made.Secret, /^[0-9a-f]{64}$/);
      assert.equal((await caller.client.readWebhook({ path: { id: made.ID } })).Secret, "");
      const { ID } = await domain(caller);
      await caller.client.deleteDomain({ path: { id: ID } });
      const received = await endpoint.until(2);
      const events = await caller.client.listEvents({ query: { type: "domain.*" } });
      assert.deepEqual(
        received.map(({ event }) => event),
        events,
      );
      for (const { headers, body, event } of received) {
        const signature = String(headers["brume-signature"]);
        const [, seconds = "", mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
        assert.equal(mac, createHmac("sha256", made.Secret).update(`${seconds}.${body}`).digest("hex"));
        assert.ok(await verifySignature({ body, signature, secret: made.Secret, now: clock.now() }));
        assert.ok(!(await verifySignature({ body: `${body} `, signature, secret: made.Secret, now: clock.now() })));
        assert.ok(!(await verifySignature({ body, signature, secret: "another", now: clock.now() })));
        assert.ok(!(await verifySignature({ body, signature, secret: made.Secret, now: clock.now() + hour })));
        assert.deepEqual([headers["brume-event"], headers["brume-webhook"]], [event.Type, String(made.ID)]);
      }
      const done = await deliveriesOf(caller, made.ID, (all) => all.every(({ State }) => State === "Delivered"));
      assert.deepEqual(
        done.map(({ Type, Attempts, Status, Error }) => [Type, Attempts, Status, Error]),
        [
          ["domain.deleted", 1, 200, null],
          ["domain.created", 1, 200, null],
        ],
      );
      const text = JSON.stringify([await caller.client.listEvents(), await caller.client.listAudit()]);
      assert.ok(!text.includes(made.Secret), "the secret is nowhere else");
      const rows = await harness.brume.store.read.selectFrom("webhook").selectAll().execute();
      assert.ok(
        rows.every(({ secret }) => !Buffer.from(secret).includes(made.Secret)),
        "and sealed at rest",
      );
      await caller.client.deleteWebhook({ path: { id: made.ID } });
      await refused(caller.client.readWebhook({ path: { id: made.ID } }), "webhook_not_found");
      await endpoint.close();
    });

    test("try again in order, and delay neither another resource nor another webhook", async () => {
      const caller = await harness.neighbour();
      let isBroken = true;
      const first = await domain(caller);
      const endpoint = await openEndpoint(({ event }) => (isBroken && event.ResourceID === first.ID ? 500 : 200));
      const dead = await openEndpoint(() => new Promise(() => {}));
      const well = await openEndpoint();
      const Types = ["domain.*"];
      const made = await caller.client.createWebhook({ body: { Url: endpoint.url, Types } });
      await caller.client.createWebhook({ body: { Url: dead.url, Types } });
      await caller.client.createWebhook({ body: { Url: well.url, Types } });
      for (const a of ["1", "2"]) await caller.client.updateDomain({ path: { id: first.ID }, body: { Labels: { a } } });
      const other = await domain(caller);
      await well.until(3);
      const seen = () => endpoint.received.map(({ event }) => event.ResourceID);
      await deliveriesOf(caller, made.ID, (all) =>
        all.some((one) => one.ResourceID === other.ID && one.State === "Delivered"),
      );
      // The two resources are sent independently, and a slow test may see a retry.
      assert.deepEqual(new Set(seen()), new Set([first.ID, other.ID]));
      const early = endpoint.received.filter(({ event }) => event.ResourceID === first.ID);
      for (const { event } of early)
        assert.equal(
          (event.Data as { Labels: { a: string } }).Labels.a,
          "1",
          "the second change waits behind the first",
        );
      const waiting = await deliveriesOf(caller, made.ID, (all) => all.some(({ Status }) => Status === 500));
      const failed = waiting.find(({ Status }) => Status === 500);
      assert.deepEqual([failed?.State, failed?.Error], ["Waiting", "The endpoint returned status 500."]);
      assert.ok(Date.parse(failed?.NextDate ?? "") > clock.now());
      isBroken = false;
      moved += 60_000;
      const before = endpoint.received.length;
      const received = await endpoint.until(before + 2);
      const changes = received.slice(before).map(({ event }) => (event.Data as { Labels: { a: string } }).Labels.a);
      assert.deepEqual(changes, ["1", "2"]);
      await deliveriesOf(caller, made.ID, (all) => all.every(({ State }) => State === "Delivered"));
      assert.equal((await caller.client.readWebhook({ path: { id: made.ID } })).FailingSince, null);
      for (const each of [endpoint, dead, well]) await each.close();
    });

    test("stop if the endpoint fails for a day or is gone, and continue after a resend", async () => {
      for (const status of [410, 503]) {
        const caller = await harness.neighbour();
        let answer = status;
        const endpoint = await openEndpoint(() => answer);
        const { ID } = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["domain.*"] } });
        await domain(caller);
        await endpoint.until(1);
        if (status === 503) {
          await deliveriesOf(caller, ID, (all) => all.some(({ Attempts }) => Attempts === 1));
          assert.notEqual((await caller.client.readWebhook({ path: { id: ID } })).FailingSince, null);
          moved += 25 * hour;
        }
        await untilState(caller, ID, "Failed");
        const [last] = await deliveriesOf(caller, ID, (all) => all.every(({ State }) => State === "Failed"));
        assert.equal(last?.Status, status);
        const changeEvents = await caller.client.listEvents({ query: { type: "webhook.changed" } });
        assert.deepEqual(
          changeEvents.map(({ Data }) => (Data as Webhook).State),
          ["Failed"],
        );
        const before = endpoint.received.length;
        const late = await domain(caller);
        answer = 204;
        const sent = await caller.client.resendDelivery({ path: { id: ID, deliveryID: last?.ID ?? 0 } });
        assert.equal(sent.State, "Waiting");
        await untilState(caller, ID, "Active");
        const received = await endpoint.until(before + 2);
        assert.equal(received.at(-1)?.event.ResourceID, late.ID);
        await endpoint.close();
      }
    });

    test("do not follow redirections", async () => {
      const caller = await harness.neighbour();
      const endpoint = await openEndpoint(() => 307);
      const { ID } = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["domain.*"] } });
      await domain(caller);
      const [one] = await deliveriesOf(caller, ID, (all) => all[0]?.Attempts === 1);
      assert.deepEqual([one?.Status, one?.State], [307, "Waiting"]);
      assert.equal(endpoint.received.length, 1);
      await endpoint.close();
    });

    test("show the last hundred deliveries and keep no more", async () => {
      const caller = await harness.neighbour();
      const endpoint = await openEndpoint();
      const { ID } = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["record.*"] } });
      const { ID: domainId } = await domain(caller);
      const Changes = Array.from(
        { length: 120 },
        (_, i) => ({ Op: "Create", TypeRecord: "A", Name: `n${i}`, IP: "192.0.2.1" }) as const,
      );
      await caller.client.changeRecords({ path: { id: domainId }, body: { Changes: [...Changes] } });
      const events = await caller.client.listEvents({ query: { type: "record.*", limit: 1000 } });
      await endpoint.until(events.length);
      // The response has only the newest hundred deliveries, so it does not show whether an older one still waits.
      const rowsOf = () =>
        harness.brume.store.read
          .selectFrom("webhook_delivery")
          .select(["id", "event_id", "state"])
          .where("webhook_id", "=", ID)
          .orderBy("id")
          .execute();
      const last = events.at(-1)?.ID;
      let rows = await rowsOf();
      while (rows.at(-1)?.event_id !== last || rows.some(({ state }) => state === "Waiting")) {
        await sleep(20);
        rows = await rowsOf();
      }
      assert.deepEqual([rows.length, rows.every(({ state }) => state === "Delivered")], [100, true]);
      const shown = await caller.client.listDeliveries({ path: { id: ID } });
      assert.deepEqual(
        shown.map(({ ID }) => ID),
        rows.map(({ id }) => id).reverse(),
      );
      await endpoint.close();
    });

    test("report events that were deleted before their delivery as one failed delivery, and continue", async () => {
      const caller = await harness.neighbour();
      const endpoint = await openEndpoint();
      const { ID } = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["domain.*"] } });
      await domain(caller);
      await deliveriesOf(caller, ID, (all) => all.some(({ State }) => State === "Delivered"));
      let end = 0;
      // As if it had been behind for longer than events are kept.
      await harness.brume.restart((store) =>
        store.write(async (tx) => {
          const newest = await tx.selectFrom("event").select("id").orderBy("id", "desc").limit(1).executeTakeFirst();
          end = newest?.id ?? 0;
          await tx.updateTable("webhook").set({ cursor: 1 }).where("id", "=", ID).execute();
          await tx.deleteFrom("event").where("id", "<", end).execute();
        }),
      );
      const late = await domain(caller);
      const all = await deliveriesOf(caller, ID, (list) =>
        list.some(({ ResourceID, State }) => ResourceID === late.ID && State === "Delivered"),
      );
      const lost = all.filter(({ State }) => State === "Failed");
      assert.deepEqual(
        lost.map(({ Type, ResourceID, Attempts, Error }) => [Type, ResourceID, Attempts, Error]),
        [["webhook.changed", ID, 0, `The events from 2 to ${end - 1} were deleted before the webhook enqueued them.`]],
      );
      await endpoint.close();
    });

    test("continue with other resources if an endpoint rejects more than may wait", async () => {
      const caller = await harness.neighbour({ RecordsPerDomain: 5000 });
      const { ID: rejected } = await domain(caller);
      const { ID: taken } = await domain(caller);
      const endpoint = await openEndpoint(({ event }) => (event.ParentID === rejected ? 400 : 200));
      const { ID } = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["record.*"] } });
      // As if it had rejected them for a while: attempts one at a time would take minutes.
      const due = clock.now() + hour;
      const row = {
        webhook_id: ID,
        event_id: 1,
        type: "record.created",
        resource: "record",
        state: "Waiting",
      } as const;
      const full = Array.from({ length: maxWaiting }, (_, i) => ({ ...row, resource_id: 1_000_000 + i }));
      for (let at = 0; at < full.length; at += 100)
        await harness.brume.store.write((tx) =>
          tx
            .insertInto("webhook_delivery")
            .values(full.slice(at, at + 100).map((one) => ({ ...one, attempts: 3, created: clock.now(), due })))
            .execute(),
        );
      await harness.brume.restart();
      const make = (DomainId: number, Name: string) =>
        caller.client.createRecordA({ body: { DomainId, Name, IP: "192.0.2.1" } });
      for (let i = 0; i < 5; i++) await make(rejected, `r${i}`);
      const others: number[] = [];
      for (let i = 0; i < 5; i++) others.push((await make(taken, `t${i}`)).ID);
      await deliveriesOf(caller, ID, (all) =>
        others.every((id) => all.some((one) => one.ResourceID === id && one.State === "Delivered")),
      );
      const rows = await harness.brume.store.read
        .selectFrom("webhook_delivery")
        .select(["state", "due", "error", "resource_id"])
        .where("webhook_id", "=", ID)
        .orderBy("id")
        .execute();
      const waiting = rows.filter((one) => one.due !== null);
      assert.ok(waiting.length <= maxWaiting, `${waiting.length} rows wait`);
      const [oldest] = rows.filter((one) => one.state === "Failed");
      assert.equal(oldest?.resource_id, 1_000_000, "the oldest fails");
      assert.match(oldest?.error ?? "", /^Dropped: more than 1000 deliveries waited/);
      await endpoint.close();
    });

    describe("are rejected", () => {
      for (const Url of [
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://[fd00::1]/",
        "http://[fe80::1]/",
        "http://0x0a000001/",
        "http://167772161/",
      ])
        test(`at ${Url}`, async () => {
          await refused(harness.client.createWebhook({ body: { Url } }), "validation_failed", {
            "/Url": "value_not_allowed",
          });
        });

      test("with invalid addresses, types or secrets, and beyond the quota", async () => {
        const { client } = harness;
        for (const Url of ["ftp://example.net/", "https://a:b@example.net/", "nonsense", "https://example.net/#a"])
          await refused(client.createWebhook({ body: { Url } }), "validation_failed", { "/Url": "format_invalid" });
        const Url = "http://127.0.0.1:9/";
        await refused(
          client.createWebhook({ body: { Url, Types: ["bogus", "x.*"], Secret: "short" } }),
          "validation_failed",
          {
            "/Types/0": "value_not_allowed",
            "/Types/1": "value_not_allowed",
            "/Secret": "too_short",
          },
        );
        const caller = await harness.neighbour({ Webhooks: 1 });
        const dry = await caller.client.createWebhook({ body: { Url } }, { dryRun: true });
        assert.deepEqual([dry.ID, dry.Secret], [0, ""]);
        const withSecret = await caller.client.createWebhook({ body: { Url, Secret: "a secret of my own" } });
        assert.equal(withSecret.Secret, "");
        await refused(caller.client.createWebhook({ body: { Url } }), "quota_exceeded");
        assert.equal((await caller.client.readOwnProject()).Usage.Webhooks, 1);
        await refused(harness.client.readWebhook({ path: { id: withSecret.ID } }), "webhook_not_found");
        assert.deepEqual((await caller.client.listWebhooks({ query: { state: "Failed" } })).length, 0);
      });
    });

    test("a delivery and a failure with dates in the future are sent and counted from now", async () => {
      const caller = await harness.neighbour();
      let answer = 503;
      const endpoint = await openEndpoint(() => answer);
      const { ID } = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["domain.*"] } });
      await domain(caller);
      await deliveriesOf(caller, ID, (all) => all.some(({ Attempts }) => Attempts === 1));
      const late = clock.now() + 1000 * 24 * hour;
      await harness.brume.restart((store) =>
        store.write(async (tx) => {
          await tx.updateTable("webhook").set({ failing_since: late }).where("id", "=", ID).execute();
          const change = { created: late, due: late };
          await tx.updateTable("webhook_delivery").set(change).where("webhook_id", "=", ID).execute();
        }),
      );
      await deliveriesOf(caller, ID, (all) => all.some(({ Attempts }) => Attempts === 2));
      const { FailingSince } = await caller.client.readWebhook({ path: { id: ID } });
      assert.ok(Date.parse(FailingSince ?? "") <= clock.now(), "it fails since now, not since a day to come");
      answer = 200;
      moved += 60_000;
      await deliveriesOf(caller, ID, (all) => all.every(({ State }) => State === "Delivered"));
      await endpoint.close();
    });

    test("survive a restart, and lose nothing that happened meanwhile", async () => {
      const caller = await harness.neighbour();
      let isBroken = true;
      const endpoint = await openEndpoint(() => (isBroken ? 503 : 200));
      const { ID } = await caller.client.createWebhook({ body: { Url: endpoint.url, Types: ["domain.*"] } });
      const made = [(await domain(caller)).ID, (await domain(caller)).ID];
      await deliveriesOf(caller, ID, (all) => all.some(({ Attempts }) => Attempts > 0));
      await harness.brume.restart();
      isBroken = false;
      moved += 60_000;
      const taken = await deliveriesOf(
        caller,
        ID,
        (all) => all.length === 2 && all.every(({ State }) => State === "Delivered"),
      );
      assert.deepEqual(new Set(taken.map(({ ResourceID }) => ResourceID)), new Set(made));
      await endpoint.close();
    });
  },
  { clock },
);
