/** One server: its state and facts, and parts that are loaded when they are opened. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import { useData, useMay } from "../../data/data.tsx";
import { Missing } from "../../data/missing.tsx";
import { queriesOf } from "../../data/queries.ts";
import { serverState } from "../../data/serverview.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Note, Skeleton } from "../../ui/feedback.tsx";
import { PageHead, State } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { ServerActions } from "./actions.tsx";
import { ServerBackups } from "./backups.tsx";
import { BootLog } from "./log.tsx";
import { PowerMenu } from "./power.tsx";
import { PowerButton, RunningState } from "./running.tsx";
import { ServerSettings } from "./settings.tsx";
import { ServerSummary } from "./summary.tsx";

const Metrics = lazy(() => import("./metrics.tsx").then(({ ServerMetrics }) => ({ default: ServerMetrics })));
const Terminal = lazy(() => import("./terminal.tsx").then(({ SerialConsole }) => ({ default: SerialConsole })));

const Screen = lazy(() => import("./screen.tsx").then(({ GraphicalConsole }) => ({ default: GraphicalConsole })));

const tabs = ["summary", "metrics", "console", "screen", "log", "backups", "actions", "settings"] as const;
/** Parts in which one can only change something. */
const forWriters: ReadonlySet<string> = new Set(["console", "screen", "settings"]);

export function ServerDetail() {
  const t = useTexts();
  const id = Number(useParams({ from: "/servers/$id" }).id);
  const { tab = "summary" } = useSearch({ from: "/servers/$id" });
  const mayWrite = useMay("server:write");
  const { data: server, error, refetch } = useQuery(queriesOf(useData().client).server(id));
  if (error && server === undefined)
    return (
      <Missing
        error={error}
        onRetry={() => void refetch()}
        icon="server"
        title={t.server.notFound}
        list={{ to: "/servers" }}
        name={t.servers.title}
      />
    );
  if (server === undefined) return <Skeleton lines={8} />;
  const { tone, word } = serverState(server, t);
  const shown = tabs.filter((name) => mayWrite || !forWriters.has(name));
  const parts: Readonly<Record<(typeof tabs)[number], () => ReactNode>> = {
    summary: () => <ServerSummary server={server} />,
    metrics: () => <Metrics server={server} />,
    console: () => <Terminal server={server} />,
    screen: () => <Screen server={server} />,
    backups: () => <ServerBackups server={server} />,
    log: () => <BootLog id={id} />,
    actions: () => <ServerActions id={id} />,
    settings: () => <ServerSettings server={server} />,
  };
  return (
    <>
      <PageHead
        crumb={<Link to="/servers">{t.servers.title}</Link>}
        title={
          <>
            {server.Name}
            <State tone={tone}>{word}</State>
            <RunningState server={server} />
          </>
        }
      >
        {mayWrite && (
          <>
            <PowerButton server={server} />
            <PowerMenu server={server} isLarge />
          </>
        )}
      </PageHead>
      <div className="stack">
        {server.Error !== null && (
          <Note kind="warn">
            <p className="break">{t.errors.detail(server.Error.detail)}</p>
            {server.State === "Failed" && <p>{t.server.notCreated}</p>}
          </Note>
        )}
        <Tabs label={t.server.tabsLabel}>
          {shown.map((name) => (
            <Link
              key={name}
              to="/servers/$id"
              params={{ id: String(id) }}
              search={{ tab: name }}
              aria-current={name === tab ? "page" : undefined}
            >
              {t.server.tabs[name]}
            </Link>
          ))}
        </Tabs>
        {/* A console, a form or a dialog of a server never continues with another one. */}
        <Suspense key={id} fallback={<Skeleton lines={6} />}>
          {parts[shown.find((name) => name === tab) ?? "summary"]()}
        </Suspense>
      </div>
    </>
  );
}
