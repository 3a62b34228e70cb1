/** Route handlers of the firewall of a public network: set it, confirm it, and test a packet against it. */
import { ApiError } from "../base/error.ts";
import { runInTurns } from "../base/turn.ts";
import { closedExcept } from "../drivers/router/model/closedaddresses.ts";
import { openingsOf } from "../drivers/router/model/openings.ts";
import { requestReconcile } from "../engine/task.ts";
import type { Handlers } from "../http/handler.ts";
import { runResting } from "../store/db.ts";
import { changePublic, getPublic, type NetworkContext, requireProjectQuota } from "./context.ts";
import { checkPacket, judgePacket } from "./model/firewall/check.ts";
import {
  checkFirewall,
  createRuleReader,
  defaultFirewall,
  firewallToText,
  normalise,
} from "./model/firewall/firewall.ts";
import { listTunnels, type NetworkRow } from "./table.ts";

/** For a spec without rules. */
const noRules = JSON.stringify(defaultFirewall);

const familiesOf = (row: NetworkRow) => ({ family6: row.first6 !== null });

export function firewallRoutes(context: NetworkContext): Handlers<"configureFirewall" | "checkFirewall"> {
  const { clock, areas, confirm, render } = context;
  const reader = createRuleReader();
  /** Before the network is read, all families are valid that a network of this installation can have. */
  const anyFamily = { family6: areas.pool6 !== null };

  return {
    configureFirewall: {
      prepareCheck: ({ Rules }) => reader.prepare(Rules ?? [], anyFamily),
      check: (body) => checkFirewall(body, anyFamily, reader.read),
      change: ({ body, ...request }, tx) =>
        changePublic(context, request, tx, async ({ network }, _tx, parse) => {
          const now = clock.now();
          // After its deadline a firewall cannot be confirmed, also if the previous one is not restored yet.
          const isUnconfirmed = network.confirm_by !== null && network.confirm_by > now;
          if (body.Confirm === true) {
            if (!isUnconfirmed)
              throw new ApiError("nothing_to_confirm", `Network ${network.id} has no unconfirmed firewall.`);
            return { fallback: null, confirm_by: null };
          }
          await runResting(tx, reader.prepare(body.Rules ?? [], familiesOf(network)));
          const wanted = normalise(body, familiesOf(network), reader.read);
          await requireProjectQuota(tx, request.caller, "FirewallRules", 0, wanted.Rules.length);
          const firewall = await runResting(tx, firewallToText(wanted));
          parse.note(firewall, wanted);
          if (body.ConfirmWithin !== undefined) {
            await requestReconcile(tx, confirm, network.id);
            return {
              firewall,
              fallback: network.fallback ?? network.firewall,
              confirm_by: now + body.ConfirmWithin * 1000,
            };
          }
          if (firewall !== network.firewall) return { firewall, fallback: null, confirm_by: null };
          // The same firewall without ConfirmWithin confirms an unconfirmed one.
          return network.confirm_by === null ? null : { fallback: null, confirm_by: null };
        }),
    },
    checkFirewall: {
      prepareCheck: ({ Rules }) => reader.prepare(Rules ?? [], anyFamily),
      check: (body) => checkPacket(body, anyFamily, reader.read),
      async read({ body, caller, params }, db) {
        const network = await getPublic(db, caller, params.id);
        await requireProjectQuota(db, caller, "FirewallRules", 0, body.Rules?.length ?? 0);
        const tunnels = await listTunnels(db, network.id);
        const spec = render({ network: { ...network, firewall: noRules }, links: [], tunnels });
        const { v4, v6, edgeAddress } = spec;
        const packetContext = {
          ...familiesOf(network),
          firewall: context.firewalls(network),
          internal: [v4.cidr, ...(v6 === null ? [] : [v6.cidr])],
          edge: [v4.gateway, edgeAddress, v6?.gateway ?? null].filter((address) => address !== null),
          openings: openingsOf(spec),
          // Addresses behind an enabled tunnel belong to the peer and are not closed.
          closed: closedExcept(
            spec.tunnels.flatMap(({ enabled, peerSubnets }) => (enabled ? peerSubnets : [])),
            spec.closed,
          ),
        };
        return { answer: await runInTurns(judgePacket(body, packetContext, reader)) };
      },
    },
  };
}
