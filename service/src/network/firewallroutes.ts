/** The firewall of a public network: set it, confirm it, ask it. */
import { ApiError } from "../base/error.ts";
import { closedExcept } from "../drivers/router/model/closedaddresses.ts";
import { openingsOf } from "../drivers/router/model/openings.ts";
import { requestReconcile } from "../engine/task.ts";
import type { Handlers } from "../http/handler.ts";
import { changePublic, getPublic, type NetworkContext, requireProjectQuota } from "./context.ts";
import { checkPacket, judgePacket } from "./model/firewall/check.ts";
import { checkFirewall, createRuleReader, firewallOf, firewallToText, normalise } from "./model/firewall/firewall.ts";
import { listTunnels, type NetworkRow } from "./table.ts";

const familiesOf = (row: NetworkRow) => ({ family6: row.first6 !== null });

export function firewallRoutes(tools: NetworkContext): Handlers<"configureFirewall" | "checkFirewall"> {
  const { clock, pools, confirm, render } = tools;
  const readRules = createRuleReader();
  /** Before the network is looked at, every family that a network here can have is good. */
  const anyFamily = { family6: pools.public6 !== null };

  return {
    configureFirewall: {
      check: (body) => checkFirewall(body, anyFamily, readRules),
      change: ({ body, ...request }, tx) =>
        changePublic(tools, request, tx, async ({ network }) => {
          const now = clock.now();
          // One that ran out and is about to be brought back waits no more.
          const waits = network.confirm_by !== null && network.confirm_by > now;
          if (body.Confirm === true) {
            if (!waits) throw new ApiError("nothing_to_confirm", `No firewall of network ${network.id} waits.`);
            return { fallback: null, confirm_by: null };
          }
          const wanted = normalise(body, familiesOf(network), readRules);
          await requireProjectQuota(tx, request.caller, "FirewallRules", 0, wanted.Rules.length);
          const firewall = firewallToText(wanted);
          if (body.ConfirmWithin !== undefined) {
            await requestReconcile(tx, confirm, network.id);
            return {
              firewall,
              fallback: network.fallback ?? network.firewall,
              confirm_by: now + body.ConfirmWithin * 1000,
            };
          }
          if (firewall !== network.firewall) return { firewall, fallback: null, confirm_by: null };
          // The same set again, now without a limit in time, confirms one that waits.
          return network.confirm_by === null ? null : { fallback: null, confirm_by: null };
        }),
    },
    checkFirewall: {
      check: (body) => checkPacket(body, anyFamily),
      async read({ body, caller, params }, db) {
        const network = await getPublic(db, caller, params.id);
        const image = render({ network, links: [], tunnels: await listTunnels(db, network.id) });
        const { v4, v6, edgeAddress } = image;
        const asked = {
          ...familiesOf(network),
          firewall: firewallOf(network),
          internal: [v4.cidr, ...(v6 === null ? [] : [v6.cidr])],
          edge: [v4.gateway, edgeAddress, v6?.gateway ?? null].filter((address) => address !== null),
          openings: openingsOf(image),
          // What is behind a tunnel is the peer's.
          closed: closedExcept(
            image.tunnels.flatMap(({ enabled, peerSubnets }) => (enabled ? peerSubnets : [])),
            image.closed,
          ),
        };
        return { answer: judgePacket(body, asked) };
      },
    },
  };
}
