/** Route handlers of the tunnels of a public network: set the list, read the status, read or create a peer configuration. */
import type { TunnelInput, TunnelPeer } from "@brume/api/vpn.ts";
import { ApiError } from "../base/error.ts";
import { within } from "../base/within.ts";
import { createPrivate, publicKeyOf } from "../drivers/router/model/wireguardkey.ts";
import { afterPreparing, type Handlers } from "../http/handler.ts";
import type { Tx } from "../store/db.ts";
import { nextGeneration } from "./change.ts";
import { changePublic, getPublic, type NetworkContext, requireProjectQuota } from "./context.ts";
import { combineOutside, peerAddressOf } from "./model/outside.ts";
import { cidrOf, showAddress } from "./model/plan.ts";
import { showPeer } from "./model/show.ts";
import { createSharedKey } from "./model/vpn/fields.ts";
import { checkTunnels, failsTunnelOnly, type PlannedTunnel, planTunnels, type TunnelPlan } from "./model/vpn/plan.ts";
import { showStatus } from "./model/vpn/status.ts";
import { openKey, readTunnel, writeSettings } from "./model/vpn/tunnel.ts";
import * as table from "./table.ts";
import { readReach } from "./tunnelreach.ts";

const engines = { IPsec: "ipsec", WireGuard: "wireguard" } as const;

/**
 * Limits of the look-ups before a change: milliseconds, and peers. Until the reconciler has applied the network and found all addresses,
 * the other peers keep their stored one, or have that of unknown peers or of the edge.
 */
const [locateTime, mostLocated] = [1000, 50];

/** Returns the address of the peer in a request. Only WireGuard has a port, so the type need not be known. */
const requestedPeer = ({ PeerEndpoint = "" }: TunnelInput): string =>
  peerAddressOf({ Type: "WireGuard", PeerEndpoint });

/** Throws `engine_unavailable` for a new or changed enabled tunnel of a type that the router driver does not support. */
function requireEngines({ tunnels }: TunnelPlan, { offers }: NetworkContext): void {
  for (const { settings, changed } of tunnels)
    if (changed && settings.Enabled && !offers[engines[settings.Type]])
      throw new ApiError("engine_unavailable", `This host has no engine for tunnels of type ${settings.Type}.`);
}

type Names = "configureVpn" | "readVpnStatus" | "readTunnelPeer" | "issueTunnelPeer";

/** Returns the row of a tunnel. Throws `tunnel_not_found`. */
const tunnelOf = (rows: readonly table.TunnelRow[], network: number, id: number): table.TunnelRow => {
  const row = rows.find((one) => one.id === id);
  if (row === undefined) throw new ApiError("tunnel_not_found", `Tunnel ${id} does not exist in network ${network}.`);
  return row;
};

/** Creates the route handlers of tunnels. */
export function vpnRoutes(context: NetworkContext): Handlers<Names> {
  const { sealer, random, live, nat } = context;

  /** Stores the tunnels of the plan. New tunnels are applied with the network's generation `generation`. */
  async function store(tx: Tx, network: table.NetworkRow, plan: TunnelPlan, generation: number): Promise<void> {
    await table.deleteTunnels(tx, plan.removed);
    for (const tunnel of plan.tunnels) {
      const row = rowOf(tunnel);
      if (tunnel.id === null) await table.insertTunnel(tx, { network_id: network.id, generation, is_up: 0, ...row });
      else if (tunnel.changed) await table.updateTunnel(tx, tunnel.id, row);
    }
  }

  const rowOf = ({ place, settings, sharedKey, labels }: PlannedTunnel) => ({
    place,
    spec: writeSettings(settings),
    shared_key: sharedKey === null ? null : sealer.seal(sharedKey),
    labels: JSON.stringify(labels),
  });

  /** Returns the lowest free UDP port: edges behind one host address need different ports. Throws `pool_exhausted`. */
  async function freePort(tx: Tx): Promise<number> {
    await table.lockPorts(tx);
    const taken = await table.listWireguardPorts(tx);
    for (let port = context.wireguardPort; port <= 65_535; port++) if (!taken.has(port)) return port;
    throw new ApiError("pool_exhausted", "No UDP port for WireGuard is free.");
  }

  /**
   * Creates the edge's key pair and reserves its port with its first WireGuard tunnel; returns the changed fields of the network. A
   * dry run shows an empty key, because the real request creates another one.
   */
  async function keysFor(
    tx: Tx,
    network: table.NetworkRow,
    { tunnels }: TunnelPlan,
    dryRun: boolean,
  ): Promise<Partial<table.NetworkRow>> {
    if (network.wireguard !== null || !tunnels.some(({ settings }) => settings.Type === "WireGuard")) return {};
    const privateKey = createPrivate(random);
    return {
      wireguard: sealer.seal(privateKey),
      wireguard_public: dryRun ? "" : publicKeyOf(privateKey),
      wireguard_port: await freePort(tx),
    };
  }

  return {
    configureVpn: afterPreparing({
      check: (body) => checkTunnels({ Tunnels: body.Tunnels ?? [] }),
      failsElementOnly: failsTunnelOnly,
      async prepare({ params, body, caller }) {
        const network = await getPublic(context.store.read, caller, params.id);
        const peers = (body.Tunnels ?? []).slice(0, mostLocated).map(requestedPeer);
        return within(context.locate(network, peers), locateTime, null);
      },
      change: ({ body, ...request }, tx, located) =>
        changePublic(context, request, tx, async ({ network, tunnels }) => {
          const known = tunnels.map((row) => ({ ...readTunnel(row), sharedKey: openKey(row, sealer) }));
          const near = {
            cidr: cidrOf(network),
            edgeAddress: showAddress(network.edge ?? ""),
            publicKey: network.wireguard_public,
          };
          // A dry run shows new secrets as empty.
          const sharedKey = () => (request.dryRun ? "" : createSharedKey(random));
          const plan = planTunnels(known, body, near, { sharedKey }, request.elementErrors);
          requireEngines(plan, context);
          await requireProjectQuota(tx, request.caller, "Tunnels", 0, plan.tunnels.length);
          if (plan.removed.length === 0 && plan.tunnels.every(({ changed }) => !changed)) return null;
          await store(tx, network, plan, nextGeneration(network));
          const peers = plan.tunnels.map(({ settings }) => peerAddressOf(settings));
          const outside = combineOutside(peers, [located, network.outside]);
          return { ...(await keysFor(tx, network, plan, request.dryRun)), outside };
        }),
    }),
    readVpnStatus: {
      async read({ params, caller }, db) {
        const network = await getPublic(db, caller, params.id);
        const tunnels = await table.listTunnels(db, network.id);
        if (tunnels.length === 0) return { answer: [] };
        const status = await live.of(network.id);
        const [otherwise, found] = typeof status === "string" ? [status, null] : ["absent" as const, status];
        const observed = new Map(found?.tunnels.map((one) => [one.id, one]));
        const stored = tunnels.map(readTunnel);
        const reach = await readReach(db, network, stored, { nat, held: found?.occupiedPorts ?? [] });
        const answer = stored.map((tunnel) => showStatus(tunnel, observed.get(tunnel.id) ?? otherwise, reach(tunnel)));
        return { answer };
      },
    },
    readTunnelPeer: {
      async read({ params, query, caller }, db) {
        const network = await getPublic(db, caller, params.id);
        const row = tunnelOf(await table.listTunnels(db, network.id), network.id, params.tunnelId);
        return { answer: showPeer(row, network, query.peer) };
      },
    },
    issueTunnelPeer: {
      async change({ params, query, ...request }, tx) {
        let answer: TunnelPeer | undefined;
        const outcome = await changePublic(context, { params, ...request }, tx, async ({ network, tunnels }) => {
          const row = tunnelOf(tunnels, network.id, params.tunnelId);
          const { settings } = readTunnel(row);
          const sharedKey = openKey(row, sealer);
          // A dry run shows placeholders, because the real request creates another key.
          if (request.dryRun) {
            answer = showPeer(row, network, query.peer);
            return null;
          }
          if (settings.Type !== "WireGuard") {
            answer = showPeer(row, network, query.peer, { sharedKey, privateKey: null });
            return null;
          }
          const privateKey = createPrivate(random);
          answer = showPeer(row, network, query.peer, { sharedKey, privateKey });
          const spec = writeSettings({ ...settings, PeerPublicKey: publicKeyOf(privateKey) });
          await table.updateTunnel(tx, row.id, { spec });
          return {};
        });
        if (answer === undefined) throw new Error("no peer configuration was created");
        return {
          answer,
          changes: outcome.changes,
          async refresh(ms) {
            await outcome.refresh?.(ms);
            return undefined;
          },
        };
      },
    },
  };
}
