/**
 * docs/spec.md#host-equals-database for networks: random requests in random order, on a router that fails, forgets and breaks, and over
 * restarts. When all tasks have ended, the router holds exactly what the API shows. The test does not check which requests are rejected.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FirewallInput } from "@brume/api/firewall.ts";
import fc from "fast-check";
import { onSqlite } from "../support/harness.ts";
import { createMovableClock, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();
const nat = fc.nat({ max: 9 });
const firewall: fc.Arbitrary<FirewallInput> = fc.record(
  {
    Enabled: fc.boolean(),
    DefaultRuleAction: fc.constantFrom("Allow", "Deny"),
    Rules: fc.array(
      fc.record({
        Action: fc.constantFrom("Allow", "Deny"),
        Protocol: fc.constantFrom("Any", "Tcp"),
        Source: fc.constantFrom("internal", "external", "192.0.2.1"),
      }),
      { maxLength: 3 },
    ),
    ConfirmWithin: fc.integer({ min: 10, max: 40 }),
  },
  { requiredKeys: [] },
);
const step = fc.oneof(
  fc.record({ do: fc.constant("order" as const), size: fc.constantFrom("30", "29", "26") }),
  fc.record({ do: fc.constant("switch" as const) }),
  fc.record({ do: fc.constant("edit" as const), of: nat, bandwidth: fc.integer({ min: 1, max: 10_000 }) }),
  fc.record({ do: fc.constant("firewall" as const), of: nat, body: firewall }),
  fc.record({ do: fc.constant("confirm" as const), of: nat }),
  fc.record({ do: fc.constant("vpn" as const), of: nat, kept: fc.nat({ max: 3 }), made: fc.nat({ max: 2 }) }),
  fc.record({ do: fc.constant("delete" as const), of: nat }),
  fc.record({ do: fc.constant("damage" as const), of: nat }),
  fc.record({ do: fc.constant("forget" as const), of: nat }),
  fc.record({ do: fc.constant("pass" as const), seconds: fc.constantFrom(3, 15, 45) }),
  fc.record({ do: fc.constantFrom("break" as const, "mend" as const, "restart" as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

onSqlite(
  "random changes of networks",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    let names = 0;
    const pick = <T>(all: readonly T[], index: number): T | undefined => all[index % Math.max(1, all.length)];

    async function take(spec: Step): Promise<void> {
      const { router } = harness.brume;
      const send = (line: string, body?: object) => harness.request(line, body, { Prefer: "wait=0" });
      const networks = await harness.client.listPublicNetworks();
      const chosen = "of" in spec ? pick(networks, spec.of) : undefined;
      const path = `/publicnetwork/${chosen?.Id ?? 99_999}`;
      switch (spec.do) {
        case "order":
          return void (await send("POST /publicnetwork", { Name: "random", NetworkCapacity: spec.size }));
        case "switch":
          return void (await send("POST /network", { Name: "random" }));
        case "edit":
          return void (await send(`PUT ${path}`, { Bandwidth: spec.bandwidth }));
        case "firewall":
          return void (await send(`PUT ${path}/firewall`, spec.body));
        case "confirm":
          return void (await send(`PUT ${path}/firewall`, { Confirm: true }));
        case "vpn": {
          const kept = (chosen?.Vpn.Tunnels ?? []).slice(0, spec.kept).map(({ Id }) => ({ Id }));
          const made = Array.from({ length: spec.made }, () => {
            names += 1;
            const blocks = `10.${names >> 8}.${names & 255}.0/24`;
            return { Name: `t${names}`, PeerNetwork: blocks, PeerEndpoint: `peer${names}.example` };
          });
          return void (await send(`PUT ${path}/vpn`, { Tunnels: [...kept, ...made] }));
        }
        case "delete": {
          const inner = pick(await harness.client.listNetworks(), spec.of);
          const isPublic = spec.of % 2 === 0 || inner === undefined;
          return void (await send(`DELETE ${isPublic ? path : `/network/${inner.ID}`}`));
        }
        case "damage":
          return router.damage(chosen?.Id ?? 0, "bridge");
        case "forget":
          return router.broken ? undefined : router.remove(chosen?.Id ?? 0);
        case "pass":
          return fixture.pass(spec.seconds);
        case "restart":
          return harness.brume.restart();
        case "break":
        case "mend":
          router.broken = spec.do === "break";
      }
    }

    /** Returns the state that the router should have, from the API. */
    async function shown(): Promise<unknown[]> {
      const networks = await harness.client.listPublicNetworks();
      const inner = await harness.client.listNetworks();
      return [
        ...networks.map(({ Id, Generation, Bandwidth, CIDR, Gateway, EdgeExternalIp, Firewall, Vpn }) => ({
          id: Id,
          generation: Generation,
          bandwidth: Bandwidth,
          v4: { cidr: CIDR, gateway: Gateway },
          edge: EdgeExternalIp,
          enabled: Firewall.Enabled,
          allow: Firewall.DefaultRuleAction === "Allow",
          rules: Firewall.Rules.map(({ Action, Source }) => [Action === "Allow", Source]),
          tunnels: Vpn.Tunnels.map((one) => [one.Id, one.SharedKey, one.PeerNetwork]),
        })),
        ...inner.map(({ ID, CIDR }) => ({ id: ID, cidr: CIDR })),
      ];
    }

    /** Returns the actual state of the router, without the shared network. */
    function currentState(): unknown[] {
      const images = harness.brume.router.images();
      const texts = (place: string | readonly string[]) => (typeof place === "string" ? place : place.join(","));
      return ["public", "private"].flatMap((kind) =>
        images
          .filter((image) => image.kind === kind)
          .map(({ id, generation, bandwidth, v4, edgeAddress: edge, firewall, tunnels }) =>
            kind === "private"
              ? { id, cidr: v4.cidr }
              : {
                  id,
                  generation,
                  bandwidth,
                  v4,
                  edge,
                  enabled: firewall.enabled,
                  allow: firewall.allow,
                  rules: firewall.rules.map((rule) => [rule.allow, texts(rule.source)]),
                  tunnels: tunnels.map((one) => [
                    one.id,
                    one.type === "ipsec" ? one.sharedKey : "",
                    one.peerSubnets.join(","),
                  ]),
                },
          ),
      );
    }

    async function isCalm(): Promise<boolean> {
      const tasks = await harness.brume.store.read
        .selectFrom("task")
        .selectAll()
        .where("name", "like", "network.%")
        .execute();
      const idle = tasks.every(
        ({ lease, wake, served, tries, due_at }) =>
          lease === null && wake === served && tries === 0 && (due_at ?? 0) > clock.now(),
      );
      const all = [...(await harness.client.listPublicNetworks()), ...(await harness.client.listNetworks())];
      return idle && all.every(({ State, Error }) => State === "Active" && Error === null);
    }

    test("end in the state that the API shows", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
          for (const one of steps) await take(one);
          harness.brume.router.broken = false;
          // Advances past all pauses after failures, confirmations and polls.
          for (let round = 0; round < 2; round++) {
            await fixture.pass(90);
            const end = Date.now() + 120_000;
            while (!(await isCalm())) assert.ok(Date.now() < end, "it does not come to rest");
          }
          assert.deepEqual(currentState(), await shown());
          const { networks } = await harness.brume.router.observe();
          assert.ok(networks.every(({ complete }) => complete));
          for (const { Id } of await harness.client.listPublicNetworks())
            await harness.client.deletePublicNetwork({ path: { id: Id } }, { wait: 60 });
          for (const { ID } of await harness.client.listNetworks())
            await harness.client.deleteNetwork({ path: { id: ID } }, { wait: 60 });
          assert.deepEqual(currentState(), []);
        }),
        { numRuns: 8, endOnFailure: true },
      );
    });
  },
  { clock },
);
