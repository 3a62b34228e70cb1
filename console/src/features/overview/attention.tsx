/** What needs attention, and why: failed checks of the service, servers, networks and tunnels with an error, and domains that are not delegated. */
import type { Domain } from "@brume/api/dns.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Server } from "@brume/api/server.ts";
import type { Readiness } from "@brume/api/service.ts";
import type { TunnelStatus } from "@brume/api/vpn.ts";
import { useQueries } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { useData } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { isInitiatedByPeer, tunnelState } from "../../data/tunnelview.ts";
import type { Texts } from "../../texts/en.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Empty, Skeleton } from "../../ui/feedback.tsx";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { Panel } from "../../ui/page.tsx";

interface Problem {
  readonly key: string;
  readonly icon: IconName;
  readonly text: string;
  readonly detail: string;
  readonly page?: LinkProps;
}

/** Networks whose tunnels are judged: each needs a request, for which the service reads the state of the host. */
const mostJudged = 20;

/** Names that a list of problems shows; the others are counted. */
const mostShown = 8;

interface AttentionProps {
  /** Undefined: not read yet. */
  readonly readiness: Readiness | undefined;
  /** Undefined here and below: the token may not read them. */
  readonly servers: readonly Server[] | undefined;
  readonly networks: readonly PublicNetwork[] | undefined;
  readonly domains: readonly Domain[] | undefined;
  /** Every read that is judged has succeeded. */
  readonly isAllRead: boolean;
  /** It shows nothing if everything works. */
  readonly isOnlyProblems?: boolean;
}

export function Attention(props: AttentionProps) {
  const { readiness, servers, networks, domains, isOnlyProblems = false } = props;
  const t = useTexts();
  const queries = queriesOf(useData().client);
  const withTunnels = (networks ?? []).filter(({ Vpn }) => Vpn.Tunnels.some(({ Enabled }) => Enabled));
  const tunneled = withTunnels.slice(0, mostJudged);
  // States have events.
  const states = useQueries({
    queries: tunneled.map(({ Id }) => ({ ...queries.tunnelStatus(Id), refetchInterval: false as const })),
  });
  const isAllRead = props.isAllRead && withTunnels.length <= mostJudged && states.every(({ error }) => error === null);
  if (isAllRead && (readiness === undefined || states.some(({ isPending }) => isPending)))
    return isOnlyProblems ? null : (
      <Panel title={t.overview.attention}>
        <Skeleton />
      </Panel>
    );
  const problems = [
    ...checkProblems(readiness?.Checks ?? [], t),
    ...serverProblems(servers ?? [], t),
    ...networkProblems(networks ?? [], t),
    ...tunneled.flatMap((network, at) => tunnelProblems(network, states[at]?.data ?? [], t)),
    ...domainProblems(domains ?? [], t),
  ];
  const { allWell } = t.overview;
  const judged = [
    servers && allWell.servers,
    networks && allWell.networks,
    domains && allWell.domains,
    allWell.checks,
  ].filter((text) => text !== undefined);
  return problems.length === 0 && (isOnlyProblems || !isAllRead) ? null : (
    <Problems problems={problems} judged={judged.join(" ")} />
  );
}

const checkProblems = (checks: Readiness["Checks"], t: Texts): readonly Problem[] =>
  checks
    .filter(({ Ok }) => !Ok)
    .map(({ Name, Detail }) => ({
      key: Name,
      icon: "error",
      text: t.overview.check(t.host.checkNames[Name] ?? Name),
      detail: t.errors.detail(Detail),
    }));

const serverProblems = (servers: readonly Server[], t: Texts): readonly Problem[] =>
  servers.flatMap(({ ID, Name, State, Error: error, Condition, Crashes }): Problem[] => {
    const page: LinkProps = { to: "/servers/$id", params: { id: String(ID) } };
    const server = { key: `server-${ID}`, page, icon: "warn", detail: "" } as const;
    if (State === "Failed") {
      const detail = t.errors.detail(error?.detail ?? "");
      return [{ ...server, icon: "error", text: t.overview.failedServer(Name), detail }];
    }
    if (Condition !== "Normal") return [{ ...server, text: t.overview.condition(Name, t.servers.states[Condition]) }];
    return Crashes > 0 ? [{ ...server, text: t.overview.crashes(Name, Crashes) }] : [];
  });

const networkPage = (id: number, tab: string): LinkProps => ({
  to: "/networks/$id",
  params: { id: String(id) },
  search: { tab },
});

const networkProblems = (networks: readonly PublicNetwork[], t: Texts): readonly Problem[] =>
  networks.flatMap(({ Id, Name, Error: error }): Problem[] =>
    error === null
      ? []
      : [
          {
            key: `network-${Id}`,
            icon: "error",
            text: t.overview.notApplied(Name),
            detail: t.errors.detail(error.detail),
            page: networkPage(Id, "overview"),
          },
        ],
  );

/** A device that initiates its tunnel may be off, so it is no problem that it does not respond. */
const tunnelProblems = (network: PublicNetwork, states: readonly TunnelStatus[], t: Texts): readonly Problem[] =>
  states.flatMap((status): Problem[] => {
    const tunnel = network.Vpn.Tunnels.find(({ Id, Enabled }) => Enabled && Id === status.TunnelId);
    if (tunnel === undefined || status.Error === null) return [];
    if (status.Error.code === "peer_unreachable" && isInitiatedByPeer(tunnel)) return [];
    return [
      {
        key: `tunnel-${tunnel.Id}`,
        icon: "warn",
        text: t.overview.tunnel(tunnel.Name, network.Name, tunnelState(tunnel, status, t).word),
        detail: t.errors.detail(status.Error.detail),
        page: networkPage(network.Id, "vpn"),
      },
    ];
  });

function domainProblems(domains: readonly Domain[], t: Texts): readonly Problem[] {
  const undelegated = domains.filter(({ Delegation }) => Delegation === "NotDelegated" || Delegation === "Partial");
  if (undelegated.length === 0) return [];
  const names = undelegated.slice(0, mostShown).map(({ Name }) => Name);
  return [
    {
      key: "delegation",
      icon: "warn",
      text: t.overview.notDelegated(undelegated.length),
      detail: names.join(", "),
    },
  ];
}

/** `judged`: what was checked and is well. */
function Problems({ problems, judged }: { problems: readonly Problem[]; judged: string }) {
  const t = useTexts();
  return (
    <Panel title={t.overview.attention} isFlush>
      {problems.length === 0 ? (
        <Empty icon="check" title={t.overview.allWell.title}>
          {judged}
        </Empty>
      ) : (
        <ul className="list padded">
          {problems.slice(0, mostShown).map(({ key, icon, text, detail, page }) => (
            <li key={key} className="line fixed">
              <Icon name={icon} />
              <div className="grow break">
                {page === undefined ? text : <Link {...page}>{text}</Link>}
                {detail !== "" && <div className="muted small">{detail}</div>}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
