/** The tunnels of a public network: set the whole list, ask how they are, read what the far end needs. */
import { Fault } from "../../base/fault.ts";
import { createPrivate, publicKeyOf } from "../../drivers/router/wireguardkey.ts";
import type { Handlers } from "../../http/handler.ts";
import type { Tx } from "../../store/db.ts";
import { cidrOf, showAddress } from "../plan.ts";
import { showPeer } from "../show.ts";
import * as table from "../table.ts";
import { changePublic, getPublic, holdProjectQuota, type NetworkTools } from "../tools.ts";
import { openKey } from "../whole.ts";
import { checkTunnels, type PlannedTunnel, planTunnels, sparesFault, type TunnelPlan } from "./plan.ts";
import { createSharedKey } from "./sharedkey.ts";
import { showStatus } from "./status.ts";
import { readTunnel, writeSettings } from "./tunnel.ts";

const engines = { IPsec: "ipsec", WireGuard: "wireguard" } as const;

/** Throws `engine_unavailable` for an enabled tunnel that the router of this installation cannot make. */
function holdEngines({ tunnels }: TunnelPlan, { offers }: NetworkTools): void {
  for (const { settings, changed } of tunnels)
    if (changed && settings.Enabled && !offers[engines[settings.Type]])
      throw new Fault("engine_unavailable", `There is no engine for tunnels of type ${settings.Type} on this host.`);
}

export function vpnRoutes(tools: NetworkTools): Handlers<"configureVpn" | "readVpnStatus" | "readTunnelPeer"> {
  const { sealer, random, live } = tools;

  /** Makes the stored tunnels those of the plan; new ones come with the network's generation `generation`. */
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

  /** The edge's own key pair, made with its first WireGuard tunnel. What a dry run would make shows nobody a key that will not be. */
  function keysFor(network: table.NetworkRow, { tunnels }: TunnelPlan, dryRun: boolean): Partial<table.NetworkRow> {
    if (network.wireguard !== null || !tunnels.some(({ settings }) => settings.Type === "WireGuard")) return {};
    const privateKey = createPrivate(random);
    return { wireguard: sealer.seal(privateKey), wireguard_public: dryRun ? "" : publicKeyOf(privateKey) };
  }

  return {
    configureVpn: {
      check: (body) => checkTunnels({ Tunnels: body.Tunnels ?? [] }),
      spares: sparesFault,
      change: ({ body, ...request }, tx) =>
        changePublic(tools, request, tx, async ({ network, tunnels }) => {
          const known = tunnels.map((row) => ({ ...readTunnel(row), sharedKey: openKey(row, sealer) }));
          const near = {
            cidr: cidrOf(network),
            edgeAddress: showAddress(network.edge ?? ""),
            publicKey: network.wireguard_public,
          };
          // New secrets of a dry run are empty.
          const sharedKey = () => (request.dryRun ? "" : createSharedKey(random));
          const plan = planTunnels(known, body, near, { sharedKey }, request.spared);
          holdEngines(plan, tools);
          await holdProjectQuota(tx, request.caller, "Tunnels", 0, plan.tunnels.length);
          if (plan.removed.length === 0 && plan.tunnels.every(({ changed }) => !changed)) return null;
          await store(tx, network, plan, network.generation + 1);
          return { ...keysFor(network, plan, request.dryRun) };
        }),
    },
    readVpnStatus: {
      async read({ params, caller }, db) {
        const network = await getPublic(db, caller, params.id);
        const tunnels = await table.listTunnels(db, network.id);
        const status = tunnels.length === 0 ? null : await live.of(network.id);
        const words = new Map(status?.tunnels.map((one) => [one.id, one]));
        const answer = tunnels.map((row) =>
          showStatus(readTunnel(row), status === null ? "silent" : (words.get(row.id) ?? "absent")),
        );
        return { answer };
      },
    },
    readTunnelPeer: {
      async read({ params, query, caller }, db) {
        const network = await getPublic(db, caller, params.id);
        const row = await table.findTunnel(db, params.tunnelId);
        if (row === undefined || row.network_id !== network.id)
          throw new Fault("tunnel_not_found", `There is no tunnel ${params.tunnelId} in network ${network.id}.`);
        return { answer: showPeer(row, network, query.peer) };
      },
    },
  };
}
