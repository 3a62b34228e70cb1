/** What needs attention, and why: failed checks of the service, servers in trouble, and domains that are not delegated. */
import type { Domain } from "@brume/api/dns.ts";
import type { Server } from "@brume/api/server.ts";
import type { Readiness } from "@brume/api/service.ts";
import { Link } from "@tanstack/react-router";
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
  readonly server?: number;
}

/** Names that a list of problems shows; the others are counted. */
const mostShown = 8;

interface AttentionProps {
  /** Undefined: not read yet. */
  readonly readiness: Readiness | undefined;
  readonly servers: readonly Server[];
  readonly domains: readonly Domain[];
  /** Every read that is judged has succeeded. */
  readonly isAllRead: boolean;
  /** It shows nothing if everything works. */
  readonly isOnlyProblems?: boolean;
}

export function Attention({ readiness, servers, domains, isAllRead, isOnlyProblems = false }: AttentionProps) {
  const t = useTexts();
  if (readiness === undefined && isAllRead)
    return isOnlyProblems ? null : (
      <Panel title={t.overview.attention}>
        <Skeleton />
      </Panel>
    );
  const problems = problemsOf(readiness?.Checks ?? [], servers, domains, t);
  return problems.length === 0 && (isOnlyProblems || !isAllRead) ? null : <Problems problems={problems} />;
}

/** Returns what needs attention: failed checks, then servers, then domains. */
function problemsOf(
  checks: Readiness["Checks"],
  servers: readonly Server[],
  domains: readonly Domain[],
  t: Texts,
): readonly Problem[] {
  const states = t.servers.states;
  const undelegated = domains.filter(({ Delegation }) => Delegation === "NotDelegated" || Delegation === "Partial");
  return [
    ...checks
      .filter(({ Ok }) => !Ok)
      .map(({ Name, Detail }) => ({
        key: Name,
        icon: "error" as const,
        text: t.overview.check(Name),
        detail: Detail,
      })),
    ...servers.flatMap(({ ID, Name, State, Error: error, Condition, Crashes }): Problem[] => {
      const server = { key: `server-${ID}`, server: ID };
      if (State === "Failed")
        return [
          {
            ...server,
            icon: "error",
            text: t.overview.failedServer(Name),
            detail: t.errors.detail(error?.detail ?? ""),
          },
        ];
      if (Condition !== "Normal")
        return [{ ...server, icon: "warn", text: t.overview.condition(Name, states[Condition]), detail: "" }];
      return Crashes > 0 ? [{ ...server, icon: "warn", text: t.overview.crashes(Name, Crashes), detail: "" }] : [];
    }),
    ...(undelegated.length > 0
      ? [
          {
            key: "delegation",
            icon: "warn" as const,
            text: t.overview.notDelegated(undelegated.length),
            detail: undelegated
              .slice(0, mostShown)
              .map(({ Name }) => Name)
              .join(", "),
          },
        ]
      : []),
  ];
}

function Problems({ problems }: { problems: readonly Problem[] }) {
  const t = useTexts();
  return (
    <Panel title={t.overview.attention} isFlush>
      {problems.length === 0 ? (
        <Empty icon="check" title={t.overview.allWell}>
          {t.overview.allWellAbout}
        </Empty>
      ) : (
        <ul className="list padded">
          {problems.slice(0, mostShown).map(({ key, icon, text, detail, server }) => (
            <li key={key} className="line fixed">
              <Icon name={icon} />
              <div className="grow break">
                {server === undefined ? (
                  text
                ) : (
                  <Link to="/servers/$id" params={{ id: String(server) }}>
                    {text}
                  </Link>
                )}
                {detail !== "" && <div className="muted small">{detail}</div>}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
