/** The settings of the service, as they are in effect: only the operator of the host changes them. */
import type { Setting } from "@brume/api/setting.ts";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import type { Texts } from "../../texts/en.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Copy } from "../../ui/button.tsx";
import { Code, Empty, ErrorBox, Segments, Skeleton } from "../../ui/feedback.tsx";
import { SearchFilter } from "../../ui/filters.tsx";
import { Panel } from "../../ui/page.tsx";

const shows = ["all", "set"] as const;

export function Settings() {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/host" });
  const { q = "", show = "all" } = useSearch({ from: "/host" });
  const { data: all, error, refetch } = useQuery(queriesOf(useData().client).settings());
  const text = q.trim().toLowerCase();
  const rows = useMemo(
    () =>
      (all ?? []).filter(
        (setting) =>
          (show !== "set" || setting.IsSet) &&
          [setting.Name, setting.Variable, setting.Value ?? "", meaningOf(setting, t)].some((part) =>
            part.toLowerCase().includes(text),
          ),
      ),
    [all, text, show, t],
  );
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  if (all === undefined) return <Skeleton lines={8} />;
  const search = (part: { q?: string; show?: string }): void => {
    void go({ search: (before) => ({ ...before, ...part }), replace: true });
  };
  return (
    <div className="stack">
      <div className="line apart">
        <p className="muted">{t.settings.about}</p>
        <a href="/docs/operate#settings">{t.settings.reference}</a>
      </div>
      <div className="filters">
        <SearchFilter label={t.settings.filter} value={q} onChange={(text) => search({ q: text })} />
        <Segments
          label={t.settings.show}
          value={show === "set" ? "set" : "all"}
          options={shows.map((name) => [name, t.settings.shows[name]])}
          onChange={(next) => search({ show: next })}
        />
        <span className="muted number" role="status">
          {t.table.of(format.number(rows.length), format.number(all.length))}
        </span>
      </div>
      {rows.length === 0 ? (
        <Empty icon="search" title={text === "" ? t.settings.noneSet : t.settings.noMatch}>
          {text === "" && t.settings.noneSetAbout}
        </Empty>
      ) : (
        <Panel isFlush>
          <ul className="list padded" aria-label={t.settings.title}>
            {rows.map((setting) => (
              <Row key={setting.ID} setting={setting} />
            ))}
          </ul>
        </Panel>
      )}
      <Panel title={t.settings.change}>
        <div className="stack tight">
          <p className="muted">{t.settings.changeAbout}</p>
          <Code text="brume config check" />
        </div>
      </Panel>
      <RequestPanel request={{ operation: "listSettings" }} />
    </div>
  );
}

function Row({ setting }: { setting: Setting }) {
  const t = useTexts();
  const { Name, Variable, Value, Source, Place, IsSet, IsHidden, NeedsRestart } = setting;
  const termOf = (text: string): string => t.settings.terms[text] ?? text;
  const Unit = termOf(setting.Unit);
  const Default = setting.Default === null ? null : termOf(setting.Default);
  const shown = IsHidden ? t.settings.hidden : (Value ?? Default ?? t.settings.none);
  const isOther = IsSet && Default !== null;
  const line = `${Name} = ${JSON.stringify(Value ?? "")}`;
  return (
    <li className="stack tight">
      <div className="line apart">
        <span className="line">
          <strong className="mono">{Name}</strong>
          <code className="muted">{Variable}</code>
          {Source !== "Default" && <span className="tag">{Place ?? t.settings.sources[Source]}</span>}
        </span>
        <span className="line fixed">
          <span className={Value === null ? "muted" : "mono break"}>
            {shown}
            {Unit !== "" && Value !== null && ` ${Unit}`}
          </span>
          <Copy text={line} label={Name} />
        </span>
      </div>
      <p className="muted small break">
        <Marked text={meaningOf(setting, t)} />
      </p>
      {(isOther || !NeedsRestart) && (
        <p className="muted small break">
          {[isOther && t.settings.default(`${Default} ${Unit}`.trim()), !NeedsRestart && t.settings.live]
            .filter(Boolean)
            .join(" · ")}
        </p>
      )}
    </li>
  );
}

const meaningOf = ({ Variable, Description }: Setting, t: Texts): string =>
  t.settings.meanings[Variable] ?? Description;

/** Shows the parts between backticks as code, and names of documents as links. */
function Marked({ text }: { text: string }) {
  return text.split(/(`[^`]*`|docs\/[a-z]+\.md)/).map((part, index) => {
    if (index % 2 === 0) return part;
    if (part.startsWith("`")) return <code key={index}>{part.slice(1, -1)}</code>;
    return (
      <a key={index} href={`/${part.replace(/\.md$/, "")}`}>
        {part}
      </a>
    );
  });
}
