/**
 * Limits under concurrent requests (docs/spec.md#quotas-hold-under-concurrency): quotas, unique names, records that exclude each other, the
 * last administrator. On PostgreSQL two services share one database and do not know of each other.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorCode } from "@brume/api/errors.ts";
import { systemClock } from "../../service/src/base/clock.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import { createSim } from "../../service/src/drivers/nameserver/sim/sim.ts";
import { createSim as createRouter } from "../../service/src/drivers/router/sim/sim.ts";
import { createService, type Service } from "../../service/src/service.ts";
import type { Store } from "../../service/src/store/db.ts";
import { type Caller, onEveryDatabase, type TestResponse } from "../support/harness.ts";
import { dial } from "../support/httpsocket.ts";
import { simulatedHost } from "../support/testservice.ts";

onEveryDatabase("limits", (harness) => {
  let second: { service: Service; store: Store; url: string } | null = null;
  before(async () => {
    if (harness.kind === "sqlite") return;
    const store = await harness.brume.database.open();
    const service = createService({
      ...simulatedHost(createRouter(Date.now)),
      store,
      nameserver: createSim(Date.now),
      clock: systemClock,
      random: Math.random,
      log: silentLog,
      sealer: createSealer(randomBytes(32)),
      version: "0.0.0",
      dnsNames: ["ns1.brume.internal"],
      resolvers: [],
      lenientHttp: false,
      tls: null,
    });
    second = { service, store, url: `http://${await service.listen("127.0.0.1", 0)}` };
  });
  after(async () => {
    await second?.service.close(1000);
    await second?.store.close();
  });

  /** Sends a request; with two services alternately to each. */
  const send = async (
    caller: Caller,
    index: number,
    line: string,
    body?: object,
  ): Promise<Pick<TestResponse, "status" | "code" | "json">> => {
    if (second === null || index % 2 === 0) return caller.request(line, body);
    const [method = "", target = ""] = line.split(" ");
    const response = await fetch(second.url + target, {
      method,
      headers: { Authorization: `Bearer ${caller.token}`, "Content-Type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = (text === "" ? null : JSON.parse(text)) as { code?: ErrorCode } | null;
    return { status: response.status, code: json?.code ?? null, json };
  };

  /** Sends all requests at once. Returns the number of successes and the codes of the others. */
  async function race(count: number, send: (index: number) => Promise<Pick<TestResponse, "status" | "code">>) {
    const response = await Promise.all(Array.from({ length: count }, (_, index) => send(index)));
    const codes = new Set(response.filter(({ status }) => status !== 200).map(({ code }) => code));
    return { done: response.filter(({ status }) => status === 200).length, codes: [...codes] };
  }

  describe("quotas", () => {
    test("of domains", async () => {
      const caller = await harness.neighbour({ Domains: 5 });
      const outcome = await race(24, (i) => send(caller, i, "POST /dns", { Name: `q${i}.domains` }));
      assert.deepEqual(outcome, { done: 5, codes: ["quota_exceeded"] });
      assert.equal((await caller.client.listDomains()).length, 5);
      assert.equal((await caller.client.readOwnProject()).Usage.Domains, 5);
    });

    test("of records in a domain, one by one and by the changeset", async () => {
      const caller = await harness.neighbour({ RecordsPerDomain: 10 });
      const { ID } = await caller.client.createDomain({ body: { Name: "full.example", Ip: "192.0.2.1" } });
      const pair = (i: number) =>
        ["a", "b"].map((end) => ({ Op: "Create", TypeRecord: "A", Name: `${end}${i}`, IP: "192.0.2.1" }));
      const { codes } = await race(24, (i) =>
        i % 3 === 0
          ? send(caller, i, `POST /dns/${ID}/changeset`, { Changes: pair(i) })
          : send(caller, i, "POST /dns/recordtxt", { DomainId: ID, Name: `t${i}`, Text: "a" }),
      );
      assert.deepEqual(codes, ["quota_exceeded"]);
      const { LinkedRecords } = await caller.client.readDomain({ path: { id: ID } });
      assert.equal(LinkedRecords.length, 10);
    });

    test("of tokens", async () => {
      const caller = await harness.neighbour({ Tokens: 4 });
      const outcome = await race(16, (i) => send(caller, i, "POST /token", { Name: `t${i}`, Scopes: ["dns:read"] }));
      assert.deepEqual(outcome, { done: 3, codes: ["quota_exceeded"] });
      assert.equal((await caller.client.listTokens()).length, 4);
    });

    test("while other requests free capacity", async () => {
      const caller = await harness.neighbour({ Domains: 3 });
      const made = await Promise.all(
        ["x", "y", "z"].map((name) => caller.client.createDomain({ body: { Name: `${name}.room` } })),
      );
      let most = 0;
      const watch = async () => {
        for (let i = 0; i < 20; i++) most = Math.max(most, (await caller.client.listDomains()).length);
      };
      const [{ codes }] = await Promise.all([
        race(24, (i) => {
          const old = made[i / 4];
          return old ? send(caller, i, `DELETE /dns/${old.ID}`) : send(caller, i, "POST /dns", { Name: `r${i}.room` });
        }),
        watch(),
      ]);
      assert.ok(most <= 3, `${most} domains were seen at once`);
      assert.ok(codes.every((code) => code === "quota_exceeded"));
    });
  });

  describe("names", () => {
    test("of domains are assigned once", async () => {
      const outcome = await race(16, (i) =>
        send(harness, i, "POST /dns", { Name: i % 3 === 0 ? "RACE.example" : "race.example" }),
      );
      assert.deepEqual(outcome, { done: 1, codes: ["domain_exists"] });
    });

    test("of parents and subdomains are assigned to one project", async () => {
      const rivals = [await harness.neighbour(), await harness.neighbour()];
      const wanted = ["tree.rivals", "rivals", "a.tree.rivals", "b.rivals"];
      const { codes } = await race(16, (i) =>
        send(rivals[i % 2] as Caller, i >> 1, "POST /dns", { Name: wanted[(i >> 1) % 4] ?? "" }),
      );
      const servers = await Promise.all(
        rivals.map(async ({ client }) => (await client.listDomains()).map(({ Name }) => Name)),
      );
      const [ones = [], others = []] = servers;
      for (const mine of ones)
        for (const theirs of others)
          assert.ok(!(`.${mine}`.endsWith(`.${theirs}`) || `.${theirs}`.endsWith(`.${mine}`)), `${mine} and ${theirs}`);
      assert.ok(ones.length + others.length > 0);
      assert.ok(codes.every((code) => code === "domain_exists" || code === "domain_not_available"));
    });

    test("of projects are assigned once", async () => {
      const outcome = await race(12, (i) => send(harness, i, "POST /project", { Name: "the one" }));
      assert.deepEqual(outcome, { done: 1, codes: ["title_taken"] });
    });
  });

  describe("records", () => {
    test("with the same content are created once", async () => {
      const { ID } = await harness.domain();
      const body = (i: number) => ({ DomainId: ID, Name: i % 2 ? "same" : "SAME", IP: "192.0.2.1", TTL: 60 + i });
      const outcome = await race(16, (i) => send(harness, i, "POST /dns/recorda", body(i)));
      assert.deepEqual(outcome, { done: 1, codes: ["record_exists"] });
    });

    test("that exclude each other never coexist", async () => {
      for (let round = 0; round < 3; round++) {
        const { ID, Name } = await harness.domain();
        const posts: [string, object][] = [
          ["cname", { MnemonicName: "x.cut", Name: "a.b" }],
          ["a", { Name: "x.cut", IP: "192.0.2.1" }],
          ["txt", { Name: "y.cut", Text: "a" }],
          ["ns", { HostName: "cut", Name: "ns.a" }],
        ];
        await race(12, (i) => {
          const [type, body] = posts[i % 4] as [string, object];
          return send(harness, i >> 2, `POST /dns/record${type}`, { DomainId: ID, ...body });
        });
        const types = (await harness.client.readDomain({ path: { id: ID } })).LinkedRecords.map(
          ({ TypeRecord }) => TypeRecord,
        );
        assert.ok(!(types.includes("CNAME") && types.includes("A")), `${Name}: ${types.join()}`);
        assert.ok(
          !(types.includes("NS") && (types.includes("CNAME") || types.includes("TXT"))),
          `${Name}: ${types.join()}`,
        );
        assert.equal(new Set(types).size, types.length, `${Name}: ${types.join()}`);
      }
    });

    test("each get their own serial, and all are served in the end", async () => {
      const { ID, Name } = await harness.domain();
      const { done } = await race(20, (i) =>
        send(harness, i, "POST /dns/recorda", { DomainId: ID, Name: "many", IP: `192.0.2.${i + 1}` }),
      );
      assert.equal(done, 20);
      const versions = await harness.client.listVersions({ path: { id: ID } });
      assert.equal(versions.length, 21);
      assert.equal(new Set(versions.map(({ Serial }) => Serial)).size, 21);
      const settled = await harness.client.waitFor("readDomain", { path: { id: ID } });
      assert.equal(settled.LinkedRecords.filter(({ State }) => State === "Active").length, 20);
      assert.equal((await harness.lookUp(`many.${Name}`, "A")).length, 20);
    });
  });

  describe("a request whose token is deleted before its body has arrived is rejected", () => {
    /** Sends the head, calls `act`, and then sends the body. Resolves to the code of the error. */
    async function interrupted(caller: Caller, path: string, body: object, act: () => Promise<unknown>) {
      const text = JSON.stringify(body);
      const line = await dial(Number(new URL(harness.brume.url).port));
      line.send(
        `POST ${path} HTTP/1.1\r\nHost: brume\r\nAuthorization: Bearer ${caller.token}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n`,
      );
      // Until then the service has authenticated the head; if not, it rejects the token, too.
      await sleep(100);
      await act();
      line.send(text);
      const response = await line.receive();
      line.close();
      return (JSON.parse(response.body) as { code?: string }).code;
    }

    const bodies = {
      "/dns": { Name: "late.example" },
      "/dns/claim": { Name: "late.example" },
      "/publicnetwork": { Name: "late" },
      "/webhook": { Url: "http://127.0.0.1:9/" },
      "/session": {},
    };
    for (const [path, body] of Object.entries(bodies))
      test(`with its project: POST ${path}`, async () => {
        const caller = await harness.neighbour();
        const end = () => harness.client.deleteProject({ path: { id: caller.project } });
        assert.equal(await interrupted(caller, path, body, end), "token_invalid");
      });

    test("alone: POST /session", async () => {
      const { Token, ID } = await harness.client.createToken({ body: { Name: "late", Scopes: ["dns:read"] } });
      const end = () => harness.client.deleteToken({ path: { id: ID } });
      assert.equal(await interrupted(harness.callerOf(Token), "/session", {}, end), "token_invalid");
    });
  });

  test("two administrators cannot delete each other's projects", async () => {
    const rivals = [await harness.neighbour(), await harness.neighbour()];
    for (const { ID: project } of (await harness.client.readAccount()).Projects)
      for (const { ID, Scopes } of await harness.client.listTokens({ query: { project } }))
        if (ID !== 1 && Scopes.includes("account:admin") && !rivals.some((one) => one.project === project))
          await harness.client.deleteToken({ path: { id: ID } });
    // Token 1 is a third administrator, so its scope is removed meanwhile.
    const expire = (at: number | null) =>
      harness.brume.store.write((tx) => tx.updateTable("token").set({ expires_at: at }).where("id", "=", 1).execute());
    await expire(1);
    const outcome = await race(2, (i) => send(rivals[i] as Caller, i, `DELETE /project/${rivals[1 - i]?.project}`));
    await expire(null);
    assert.equal(outcome.done, 1);
    assert.ok(
      outcome.codes.every((code) => code === "project_in_use" || code === "token_invalid"),
      outcome.codes.join(),
    );
  });

  test("two administrators cannot delete each other", async () => {
    const { Token, ID } = await harness.client.createToken({ body: { Name: "rival", Scopes: ["account:admin"] } });
    const rival = harness.callerOf(Token);
    for (const { ID: project } of (await harness.client.readAccount()).Projects)
      for (const token of await harness.client.listTokens({ query: { project } }))
        if (token.ID !== 1 && token.ID !== ID) await harness.client.deleteToken({ path: { id: token.ID } });
    const outcome = await race(2, (i) =>
      i === 0 ? send(harness, i, `DELETE /token/${ID}`) : send(rival, i, "DELETE /token/1"),
    );
    assert.equal(outcome.done, 1);
    assert.ok(outcome.codes.every((code) => code === "last_admin_token" || code === "token_invalid"));
    const rows = await harness.brume.store.read.selectFrom("token").select("id").where("is_admin", "=", 1).execute();
    assert.equal(rows.length, 1);
  });
});
