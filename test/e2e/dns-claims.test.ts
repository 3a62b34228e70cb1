/**
 * Ownership of names: public suffixes, claims that a project proves in the public DNS, the withdrawn domain of the other project, and
 * reservations of the operator. A second name server on loopback acts as the public DNS.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Claim, claimLimits } from "@brume/api/claim.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { openServer } from "../support/dnstools.ts";
import { type Caller, onEveryDatabase, refused } from "../support/harness.ts";
import { image, set } from "../support/zone.ts";

const outside = new Map<string, Nameserver>();

onEveryDatabase(
  "claims",
  (harness) => {
    let other: Caller & { readonly project: number };
    let serial = 0;

    before(async () => {
      other = await harness.neighbour();
    });
    after(() => outside.get(harness.kind)?.close());

    const create = (caller: Caller, Name: string, more: object = {}) =>
      caller.client.createDomain({ body: { Name, ...more } });
    const erase = (caller: Caller, id: number) => caller.client.deleteDomain({ path: { id } });
    /** Creates the claim, or requests another check. */
    const claim = (caller: Caller, Name: string) => caller.client.createClaim({ body: { Name } }, { wait: 60 });
    /** Sets the records of a name in the public DNS. */
    const publish = async (zone: string, texts: Readonly<Record<string, string>>): Promise<void> => {
      serial += 1;
      const sets = Object.entries(texts).map(([owner, text]) => set(owner, "TXT", text));
      await outside.get(harness.kind)?.publish([image(zone, serial, sets)]);
    };
    const proof = ({ RecordName, RecordText }: Claim) => ({ [RecordName.slice(0, -1)]: RecordText });
    const typesOf = async (caller: Caller): Promise<string[]> => {
      const events = await caller.client.listEvents({ query: { type: "domain.*,claim.*", limit: 1000 } });
      return events.map(({ Type, ResourceID }) => `${Type} ${ResourceID}`);
    };

    describe("public suffixes", () => {
      for (const Name of ["co.uk", "com", "github.io", "рф", "foo.ck", "in-addr.arpa"])
        test(`${Name} is rejected for a domain and for a claim`, async () => {
          const errors = { "/Name": "domain_public_suffix" };
          await refused(create(harness, Name), "domain_public_suffix", errors);
          await refused(claim(harness, Name), "domain_public_suffix", errors);
        });

      for (const Name of ["internal", "lan", "home.arpa", "corp", "shop.co.uk", "me.github.io", "10.in-addr.arpa"])
        test(`${Name} is accepted`, async () => {
          const { ID } = await create(harness, Name);
          await erase(harness, ID);
        });

      test("a suffix that a project already owns does not exclude the names below it", async () => {
        const { ID } = await create(harness, "suffix.example");
        await harness.brume.store.write(async (tx) => {
          await tx.updateTable("domain").set({ ascii: "org.uk", subtree: "uk.org." }).where("id", "=", ID).execute();
        });
        const context = await create(other, "shop.org.uk");
        await erase(other, context.ID);
        await erase(harness, ID);
      });
    });

    test("a domain moves to the project that proves its claim, and the other project keeps a zone file", async () => {
      const lost = await create(harness, "wanted.example", { Ip: "192.0.2.1", Labels: { env: "prod" } });
      const below = await create(harness, "deep.wanted.example");
      await refused(create(other, "wanted.example"), "domain_not_available");
      const first = await claim(other, "Wanted.Example.");
      assert.deepEqual(
        [first.State, first.DomainID, first.Name, first.RecordName],
        ["Pending", null, "wanted.example", "_brume-challenge.wanted.example."],
      );
      assert.match(first.RecordText, /^brume-claim=[0-9a-f]{32}$/);
      assert.equal((await claim(other, "wanted.example")).ID, first.ID, "the pending claim, checked again");

      await publish("wanted.example", { "_brume-challenge.wanted.example": "brume-claim=wrong" });
      const second = await claim(other, "wanted.example");
      assert.equal(second.State, "Pending");
      assert.equal(second.Detail, "_brume-challenge.wanted.example has 1 other TXT records.");
      assert.deepEqual(await harness.lookUp("wanted.example", "A"), ["192.0.2.1"]);

      await publish("wanted.example", proof(first));
      const done = await claim(other, "wanted.example");
      assert.deepEqual([done.ID, done.State], [first.ID, "Completed"]);
      const path = { id: done.DomainID ?? 0 };
      const got = await other.client.readDomain({ path });
      assert.deepEqual([got.Name, got.LinkedRecords, got.State], ["wanted.example", [], "Active"]);
      assert.ok(got.Serial > lost.Serial);
      assert.equal(await harness.lookUp("wanted.example", "A"), "ENODATA");
      assert.deepEqual(await harness.lookUp("wanted.example", "NS"), ["ns1.brume.internal"]);

      await refused(harness.client.readDomain({ path: { id: lost.ID } }), "domain_not_found");
      await refused(harness.client.readDomain({ path: { id: below.ID } }), "domain_not_found");
      await refused(create(harness, "wanted.example"), "domain_not_available");
      const kept = await harness.client.listWithdrawnDomains();
      assert.deepEqual(
        kept.map(({ ID, Name, Records, ZoneFile, Labels }) => [ID, Name, Records, ZoneFile, Labels]),
        [
          [lost.ID, "wanted.example", 1, "", { env: "prod" }],
          [below.ID, "deep.wanted.example", 0, "", {}],
        ],
      );
      const { ZoneFile } = await harness.client.readWithdrawnDomain({ path: { id: lost.ID } });
      assert.match(ZoneFile, /^wanted\.example\. 3600 IN A 192\.0\.2\.1$/m);
      const mine = await typesOf(harness);
      assert.ok(mine.includes(`domain.withdrawn ${lost.ID}`) && mine.includes(`domain.withdrawn ${below.ID}`));
      const theirs = await typesOf(other);
      assert.deepEqual(
        theirs.filter((one) => one.endsWith(` ${path.id}`) || one.startsWith("claim.")),
        [`claim.created ${first.ID}`, `domain.created ${path.id}`, `claim.changed ${first.ID}`],
      );

      await refused(other.client.readWithdrawnDomain({ path: { id: lost.ID } }), "withdrawn_domain_not_found");
      await refused(harness.client.readClaim({ path: { id: first.ID } }), "claim_not_found");
      for (const { ID } of kept) await harness.client.deleteWithdrawnDomain({ path: { id: ID } });
      assert.deepEqual(await harness.client.listWithdrawnDomains(), []);
      await other.client.deleteClaim({ path: { id: first.ID } });
      await erase(other, path.id);
    });

    test("a record inside a domain is the consent of its project to a subdomain", async () => {
      const parent = await create(harness, "parent.example", { Ip: "192.0.2.1" });
      const newClaim = await claim(other, "shop.parent.example");
      assert.equal(newClaim.State, "Pending");
      const body = { DomainId: parent.ID, Name: newClaim.RecordName, Text: newClaim.RecordText };
      await harness.client.createRecordTXT({ body });
      const done = await claim(other, "shop.parent.example");
      assert.equal(done.State, "Completed");
      assert.deepEqual(await harness.lookUp("parent.example", "A"), ["192.0.2.1"]);
      assert.deepEqual(await harness.lookUp("shop.parent.example", "NS"), ["ns1.brume.internal"]);
      assert.deepEqual(await harness.client.listWithdrawnDomains(), []);
      await erase(other, done.DomainID ?? 0);
      await erase(harness, parent.ID);
    });

    test("a claim of a parent domain does not withdraw subdomains that are proven themselves", async () => {
      const foreignSubdomain = await create(harness, "x.owner.example");
      const third = await harness.neighbour();
      await refused(create(other, "owner.example"), "domain_not_available");
      const newClaim = await claim(other, "owner.example");
      // A record in a subdomain is no consent for the parent.
      const deep = await claim(third, "branch.owner.example");
      await publish("owner.example", { ...proof(newClaim), ...proof(deep) });
      assert.equal((await claim(third, "branch.owner.example")).State, "Completed");
      const done = await claim(other, "owner.example");
      assert.equal(done.State, "Completed");
      assert.deepEqual(
        (await harness.client.listWithdrawnDomains()).map(({ ID }) => ID),
        [foreignSubdomain.ID],
      );
      assert.deepEqual(
        (await third.client.listDomains()).map(({ Name }) => Name),
        ["branch.owner.example"],
      );
      await harness.client.deleteWithdrawnDomain({ path: { id: foreignSubdomain.ID } });
      await erase(other, done.DomainID ?? 0);
    });

    test("the name of a proof cannot be a domain", async () => {
      for (const Name of ["_brume-challenge.victim.example", "a._Brume-Challenge.victim.example"])
        await refused(create(harness, Name), "domain_reserved", { "/Name": "domain_reserved" });
    });

    test("a reservation of the operator proves the claims of its project, and can be released", async () => {
      const held = await create(harness, "corp.example");
      const { ID } = await harness.client.createReservation({
        body: { Name: "corp.example", ProjectID: other.project },
      });
      await refused(harness.client.createReservation({ body: { Name: "Corp.example" } }), "reservation_exists");
      await refused(create(harness, "a.corp.example"), "domain_reserved", { "/Name": "domain_reserved" });
      assert.equal((await harness.client.readDomain({ path: { id: held.ID } })).State, "Active", "what exists stays");
      const below = await create(other, "b.corp.example");
      const done = await claim(other, "corp.example");
      assert.equal(done.State, "Completed");
      await refused(harness.client.readDomain({ path: { id: held.ID } }), "domain_not_found");

      const none = await harness.client.createReservation({ body: { Name: "c.corp.example" } });
      await refused(create(other, "c.corp.example"), "domain_reserved");
      await refused(claim(other, "x.c.corp.example"), "domain_reserved");
      for (const id of [ID, none.ID]) await harness.client.deleteReservation({ path: { id } });
      await erase(other, below.ID);
      await erase(other, done.DomainID ?? 0);
      await erase(harness, (await create(harness, "c.corp.example")).ID);
      const suffix = await harness.client.createReservation({ body: { Name: "co.uk", ProjectID: 1 } });
      const mine = await create(harness, "co.uk");
      await refused(create(other, "shop.co.uk"), "domain_reserved");
      await harness.client.deleteReservation({ path: { id: suffix.ID } });
      await erase(other, (await create(other, "shop.co.uk")).ID);
      await erase(harness, mine.ID);
      const kept = await harness.client.listWithdrawnDomains();
      for (const one of kept) await harness.client.deleteWithdrawnDomain({ path: { id: one.ID } });
    });

    test("a proven claim stays pending while the quota is used up, and an expired claim fails", async () => {
      const { ID } = await create(harness, "scarce.example");
      const small = await harness.neighbour({ Domains: 0 });
      const newClaim = await claim(small, "scarce.example");
      await publish("scarce.example", proof(newClaim));
      const late = await claim(small, "scarce.example");
      assert.deepEqual([late.State, late.Detail], ["Pending", "Domains: wanted 1, free 0, limit 0."]);
      await harness.brume.store.write(async (tx) => {
        await tx.updateTable("domain_claim").set({ expires: 0 }).where("id", "=", newClaim.ID).execute();
      });
      assert.equal((await claim(small, "scarce.example")).State, "Failed");
      assert.equal((await harness.client.readDomain({ path: { id: ID } })).State, "Active");
      await erase(harness, ID);
    });

    test("a restricted token can neither read nor create claims and withdrawn domains", async () => {
      const { ID } = await create(harness, "limited.example");
      const newClaim = await claim(harness, "limited.example");
      const caller = await harness.as(["dns:write"], { DomainID: ID });
      assert.deepEqual(await caller.client.listClaims(), []);
      assert.deepEqual(await caller.client.listWithdrawnDomains(), []);
      await refused(caller.client.readClaim({ path: { id: newClaim.ID } }), "claim_not_found");
      await refused(claim(caller, "limited.example"), "token_restricted");
      await harness.client.deleteClaim({ path: { id: newClaim.ID } });
      await erase(harness, ID);
    });

    test("a claim with dates in the future is checked on time and expires in time", async () => {
      const { ID } = await create(harness, "future.example");
      const { ID: id } = await claim(other, "future.example");
      const day = 86_400_000;
      const late = Date.now() + 1000 * day;
      const before = Date.now();
      await harness.brume.restart((store) =>
        store.write(async (tx) => {
          const change = { created: late, checked: late, expires: late + claimLimits.days * day };
          await tx.updateTable("domain_claim").set(change).where("id", "=", id).execute();
          // A start brings times back only if no other service uses the database.
          const due = store.alone ? late : 0;
          await tx.updateTable("task").set({ due_at: due }).where("name", "=", "dns.claim").execute();
        }),
      );
      const rowOf = () =>
        harness.brume.store.read.selectFrom("domain_claim").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
      let row = await rowOf();
      while ((row.checked ?? late) >= late) {
        await sleep(20);
        row = await rowOf();
      }
      assert.ok(row.checked !== null && row.checked >= before, "it was checked after the start");
      assert.ok(row.expires <= Date.now() + claimLimits.days * day, "its rest is not longer than a whole term");
      const dueOf = () =>
        harness.brume.store.read
          .selectFrom("task")
          .select("due_at")
          .where("name", "=", "dns.claim")
          .where("subject_id", "=", id)
          .executeTakeFirstOrThrow();
      let due = (await dueOf()).due_at;
      while ((due ?? late) >= late) {
        await sleep(20);
        due = (await dueOf()).due_at;
      }
      assert.ok((due ?? late) <= Date.now() + 12 * 60_000, "the next check is within the longest pause");
      await other.client.deleteClaim({ path: { id } });
      await erase(harness, ID);
    });
  },
  async (kind) => {
    const server = await openServer();
    outside.set(kind, server);
    return { resolvers: [(await server.observe()).address] };
  },
);
