/** The status of tunnels (docs/spec.md#vpn-tunnel, #event): read from the engine on request, and events of its changes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@brume/api/event.ts";
import type { TunnelStatus } from "@brume/api/vpn.ts";
import type { TunnelFault, TunnelStatus as Word } from "../../service/src/drivers/router/interface.ts";
import { onSqlite } from "../support/harness.ts";
import { createMovableClock, useNetworkFixture } from "../support/networkfixture.ts";
import { tunnelUp } from "../support/tunnelspec.ts";

const clock = createMovableClock();
const office = { Name: "office", PeerNetwork: "10.0.0.0/24", PeerEndpoint: "203.0.113.50" };

onSqlite(
  "the status of tunnels",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const statusOf = (id: number) => harness.client.readVpnStatus({ path: { id } });
    /** Creates a network with a tunnel that is up, and functions that set the status in the engine. */
    async function connected(more: object = {}) {
      const { Id: id } = await fixture.network();
      const { Vpn } = await harness.client.configureVpn({ path: { id }, body: { Tunnels: [{ ...office, ...more }] } });
      const tunnel = Vpn.Tunnels[0]?.Id ?? 0;
      const word = tunnelUp(tunnel);
      return {
        id,
        tunnel,
        simulate: (change: Partial<Word>) => harness.brume.router.report(id, { ...word, ...change }),
      };
    }
    const down = (error: TunnelFault, detail: string) =>
      ({ state: "down", reason: { fault: error, detail }, establishedAt: null, proposal: "" }) as const;
    const statusEvents = (events: readonly Event[], id: number) =>
      events.filter(({ Resource, ParentID }) => Resource === "tunnel" && ParentID === id);
    /** Polls twice: the first poll emits these events, the second none. */
    async function observeTwice(id: number, types: readonly string[]): Promise<Event[]> {
      await fixture.pollHost();
      if (types.length > 0) await fixture.untilEvent(({ Type, ParentID }) => Type === types.at(-1) && ParentID === id);
      const events = statusEvents(await fixture.newEvents(), id);
      assert.deepEqual(
        events.map(({ Type }) => Type),
        types,
      );
      const looks = harness.brume.router.observations;
      await fixture.pollHost();
      await harness.client.waitFor("readBalance", {}, { until: () => harness.brume.router.observations > looks + 1 });
      assert.deepEqual(statusEvents(await fixture.newEvents(), id), []);
      return events;
    }

    test("is read from the engine on request, tunnel by tunnel", async () => {
      const { id, tunnel, simulate } = await connected();
      simulate({});
      assert.deepEqual(await statusOf(id), [
        {
          TunnelId: tunnel,
          Operational: true,
          State: "Up",
          Error: null,
          EstablishedAt: "2026-11-20T09:20:11.007Z",
          BytesIn: 104_857,
          BytesOut: 98_112,
          LastSeen: "2026-11-20T09:20:12.450Z",
          LocalSubnets: ["10.64.0.8/29"],
          PeerSubnets: ["10.0.0.0/24"],
          PeerAddress: "203.0.113.50",
          Proposal: "AES_CBC_256/HMAC_SHA2_256_128/MODP_2048",
        },
      ]);
      const { Id: empty } = await fixture.network();
      assert.deepEqual(await statusOf(empty), []);
    });

    test("gives the reason why a tunnel is not up", async () => {
      const { id, simulate } = await connected();
      const reasons: TunnelFault[] = [
        "authentication_failed",
        "no_proposal_chosen",
        "selectors_refused",
        "peer_unreachable",
      ];
      for (const error of reasons) {
        simulate(down(error, "Ours is this, theirs is that."));
        const [status] = await statusOf(id);
        assert.deepEqual(
          [status?.State, status?.Operational, status?.Proposal, status?.PeerSubnets],
          ["Down", false, "", []],
        );
        assert.equal(status?.Error?.code, error);
        // The simulated host translates addresses, which the peer must know.
        assert.match(
          status.Error.detail,
          /^Ours is this, theirs is that\. The edge is behind NAT: the peer reaches it at 192\.0\.2\.1 /,
        );
        assert.equal(status?.Error?.type, `/docs#${error}`);
      }
      simulate({ state: "connecting", establishedAt: null });
      assert.deepEqual(
        (await statusOf(id)).map(({ State, Error }) => [State, Error]),
        [["Connecting", null]],
      );
    });

    test("shows that a tunnel is disabled or not created yet", async () => {
      const { id, tunnel } = await connected({ Enabled: false });
      const brief = (all: TunnelStatus[]) => all.map(({ State, Operational, Error }) => [State, Operational, Error]);
      assert.deepEqual(brief(await statusOf(id)), [["Disabled", false, null]]);
      harness.brume.router.broken = true;
      const body = {
        Tunnels: [{ Id: tunnel }, { ...office, Name: "b", PeerNetwork: "10.1.0.0/16", PeerEndpoint: "203.0.113.9" }],
      };
      await harness.client.configureVpn({ path: { id }, body }, { wait: 0 });
      assert.deepEqual(brief(await statusOf(id)), [
        ["Disabled", false, null],
        ["Connecting", false, null],
      ]);
    });

    test("shows tunnels of a network that is not applied yet as connecting", async () => {
      const { router } = harness.brume;
      const { apply } = router;
      const end = Promise.withResolvers<void>();
      router.apply = async (spec, tell) => {
        await end.promise;
        return apply(spec, tell);
      };
      const { Id: id } = await harness.client.createPublicNetwork({ body: { Name: "slow" } }, { wait: 0 });
      try {
        await harness.client.configureVpn({ path: { id }, body: { Tunnels: [office] } }, { wait: 0 });
        assert.deepEqual(
          (await statusOf(id)).map(({ State, Error }) => [State, Error]),
          [["Connecting", null]],
        );
      } finally {
        router.apply = apply;
        end.resolve();
      }
      await fixture.untilApplied(id);
      assert.equal((await statusOf(id))[0]?.State, "Up");
    });

    test("is unknown while the engine does not respond", async () => {
      const { id } = await connected();
      harness.brume.router.silent = true;
      const [status] = await statusOf(id);
      assert.deepEqual(
        [status?.State, status?.Operational, status?.Error?.code],
        ["Unknown", false, "engine_unavailable"],
      );
      assert.equal((await fixture.read(id)).State, "Active", "the network can be read all the same");
      harness.brume.router.silent = false;
      assert.equal((await statusOf(id))[0]?.State, "Up");
    });

    test("is reported while a network without a row cannot be removed", async () => {
      const { id, simulate } = await connected();
      await observeTwice(id, ["tunnel.up"]);
      const { router } = harness.brume;
      const { remove } = router;
      const spec = router.images().find((image) => image.id === id);
      assert.ok(spec);
      await router.apply({ ...spec, id: 4711, tunnels: [] });
      router.remove = async (network) => {
        if (network === 4711) throw new Error("the namespace is in use");
        return remove(network);
      };
      try {
        simulate(down("peer_unreachable", "No response."));
        await observeTwice(id, ["tunnel.down"]);
      } finally {
        router.remove = remove;
      }
    });

    test("emits one event per change", async () => {
      const { id, tunnel, simulate } = await connected();
      const [up] = await observeTwice(id, ["tunnel.up"]);
      assert.deepEqual([up?.ResourceID, up?.RequestID, up?.TokenID], [tunnel, null, null]);
      assert.deepEqual(
        [(up?.Data as TunnelStatus | undefined)?.TunnelId, (up?.Data as TunnelStatus | undefined)?.State],
        [tunnel, "Up"],
      );
      simulate(down("peer_unreachable", "No response."));
      const [gone] = await observeTwice(id, ["tunnel.down"]);
      assert.equal((gone?.Data as TunnelStatus | undefined)?.Error?.code, "peer_unreachable");
      simulate({ state: "unknown" });
      await observeTwice(id, []);
      simulate(down("no_proposal_chosen", "Theirs is older."));
      await observeTwice(id, []);
      await harness.brume.restart();
      simulate({});
      await observeTwice(id, ["tunnel.up"]);
      await harness.client.configureVpn({ path: { id }, body: { Tunnels: [{ Id: tunnel, Enabled: false }] } });
      await observeTwice(id, ["tunnel.down"]);
      const otherToken = await harness.as(["dns:read", "server:read"]);
      assert.deepEqual(await otherToken.client.listEvents({ query: { type: "tunnel.*" } }), []);
    });
  },
  { clock },
);
