/** The firewall of a public network: set it, confirm it, ask it. */
import { Fault } from "../../base/fault.ts";
import { nudge } from "../../engine/task.ts";
import type { Handlers } from "../../http/handler.ts";
import { cidr6Of, cidrOf, gateway6Of, showAddress } from "../plan.ts";
import type { NetworkRow } from "../table.ts";
import { changePublic, getPublic, holdProjectQuota, type NetworkTools } from "../tools.ts";
import { checkPacket, judgePacket } from "./check.ts";
import { checkFirewall, normalise, type StoredFirewall } from "./firewall.ts";

const familiesOf = (row: NetworkRow) => ({ family6: row.first6 !== null });

/** What the check must know of the network: its blocks and the addresses that are the edge itself. */
function askedOf(row: NetworkRow) {
  const own = [row.gateway, row.edge].filter((ip) => ip !== null).map(showAddress);
  return {
    ...familiesOf(row),
    firewall: JSON.parse(row.firewall) as StoredFirewall,
    internal: [cidrOf(row), ...(row.first6 === null ? [] : [cidr6Of(row.first6)])],
    edge: [...own, ...(row.first6 === null ? [] : [gateway6Of(row.first6)])],
  };
}

export function firewallRoutes(tools: NetworkTools): Handlers<"configureFirewall" | "checkFirewall"> {
  const { clock, pools, confirm } = tools;
  /** Before the network is looked at, every family that a network here can have is good. */
  const anyFamily = { family6: pools.public6 !== null };

  return {
    configureFirewall: {
      check: (body) => checkFirewall(body, anyFamily),
      change: ({ body, ...request }, tx) =>
        changePublic(tools, request, tx, async ({ network }) => {
          const now = clock.now();
          // One that ran out and is about to be brought back waits no more.
          const waits = network.confirm_by !== null && network.confirm_by > now;
          if (body.Confirm === true) {
            if (!waits) throw new Fault("nothing_to_confirm", `No firewall of network ${network.id} waits.`);
            return { fallback: null, confirm_by: null };
          }
          const wanted = normalise(body, familiesOf(network));
          await holdProjectQuota(tx, request.caller, "FirewallRules", 0, wanted.Rules.length);
          const firewall = JSON.stringify(wanted);
          if (body.ConfirmWithin !== undefined) {
            await nudge(tx, confirm, network.id);
            return {
              firewall,
              fallback: network.fallback ?? network.firewall,
              confirm_by: now + body.ConfirmWithin * 1000,
            };
          }
          if (firewall === network.firewall && network.confirm_by === null) return null;
          return { firewall, fallback: null, confirm_by: null };
        }),
    },
    checkFirewall: {
      check: (body) => checkPacket(body, anyFamily),
      async read({ body, caller, params }, db) {
        return { answer: judgePacket(body, askedOf(await getPublic(db, caller, params.id))) };
      },
    },
  };
}
