/** The rules of a firewall: a table that one edits in place, and on a narrow screen a list of sentences. */
import { ruleActions, ruleProtocols } from "@brume/api/firewall.ts";
import { useMemo } from "react";
import { editRule, type Rule, type RuleCounter, type RuleSet, removeRule } from "../../data/firewall.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty } from "../../ui/feedback.tsx";
import { Icon } from "../../ui/icon.tsx";
import { useMedia } from "../../ui/media.ts";
import { State } from "../../ui/page.tsx";
import { SortHandle } from "../../ui/sorthandle.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { useSentence } from "./sentence.ts";

interface RuleTableProps {
  readonly rules: readonly Rule[];
  /** Counters of the stored rules, by number. */
  readonly counters: ReadonlyMap<number, RuleCounter>;
  readonly base: RuleSet;
  /** Errors by `key/field`. */
  readonly errors: ReadonlyMap<string, string>;
  readonly shadowed: ReadonlyMap<number, number>;
  /** Key of the rule that decides on the test packet; null: none. */
  readonly decides: number | null;
  readonly mayWrite: boolean;
  readonly onEdit: (change: (set: RuleSet) => RuleSet) => void;
  readonly onOpen: (key: number) => void;
  readonly onMove: (from: number, to: number) => void;
}

/** Rules up to which a narrow screen shows a list; a longer one is a table, which draws only what is visible. */
const mostListed = 200;

export function RuleTable(props: RuleTableProps) {
  const { rules, counters, base, errors, shadowed, decides, mayWrite, onEdit, onOpen, onMove } = props;
  const t = useTexts();
  const format = useFormat();
  const sentence = useSentence();
  // A table of this page has space for all that a rule decides by.
  const isNarrow = useMedia("(max-width: 1265px)");
  const index = useMemo(() => new Map(rules.map(({ key }, at) => [key, at])), [rules]);
  const stored = useMemo(() => new Map(base.Rules.map((rule) => [rule.key, rule])), [base]);
  const numberOf = ({ key }: Rule): number => (index.get(key) ?? 0) + 1;
  const lookOf = (rule: Rule): string => {
    const before = stored.get(rule.key);
    const look = before === undefined ? "new" : before === rule ? "" : "changed";
    return rule.key === decides ? `${look} decides` : look;
  };
  const hits = ({ key }: Rule): { readonly text: string; readonly about: string } => {
    const of = counters.get(key)?.rule;
    if (of === undefined || of.Packets === null) return { text: "–", about: "" };
    if (of.Packets === 0) return { text: "0", about: t.firewall.noHit };
    const packets = t.firewall.packets(of.Packets, format.compact(of.Packets));
    const last = of.LastHit === null ? "" : `, ${t.firewall.lastHit(format.ago(of.LastHit))}`;
    return { text: format.compact(of.Packets), about: `${packets}, ${format.bytes(of.Bytes ?? 0)}${last}` };
  };
  /** How often the rule has matched lately; nothing while it does not match. */
  const rate = ({ key }: Rule) => {
    const { rates = [] } = counters.get(key) ?? {};
    if (rates.every((each) => each === 0)) return null;
    const now = t.queries.perSecond(format.number(Math.round((rates.at(-1) ?? 0) * 10) / 10));
    return (
      <span className="rule-rate" title={now}>
        <Sparkline label={`${t.firewall.hits}: ${now}`} values={rates} />
      </span>
    );
  };
  const handle = (rule: Rule) =>
    mayWrite && (
      <SortHandle label={t.firewall.move(numberOf(rule), rule.Name)} index={numberOf(rule) - 1} onMove={onMove} />
    );
  const marks = (rule: Rule) => {
    const by = shadowed.get(rule.key);
    return (
      <>
        {rule.key === decides && (
          <span className="decides-mark" title={t.firewall.decides}>
            <Icon name="target" />
            <span className="hidden-text">{t.firewall.decides}</span>
          </span>
        )}
        {by !== undefined && (
          <span className="shadow-mark" title={t.firewall.shadowed(by)}>
            <Icon name="warn" />
            <span className="hidden-text">{t.firewall.shadowed(by)}</span>
          </span>
        )}
      </>
    );
  };
  const buttons = (rule: Rule) => (
    <span className="line fixed buttons">
      <Button
        kind="quiet"
        size="small"
        icon="edit"
        aria-label={t.firewall.edit(numberOf(rule))}
        onClick={() => onOpen(rule.key)}
      />
      <Button
        kind="quiet"
        size="small"
        icon="trash"
        aria-label={t.firewall.remove(numberOf(rule))}
        onClick={() => onEdit((set) => removeRule(set, rule.key))}
      />
    </span>
  );

  // Few rules have one, but without it they seem to decide more packets than they do.
  const hasSourcePorts = rules.some(({ SourcePort }) => SourcePort !== "any");
  const columns = useMemo<Column<Rule>[]>(() => {
    const select = (field: "Action" | "Protocol", name: string, options: readonly string[]): Column<Rule> => ({
      id: field,
      name,
      width: field === "Action" ? "112px" : "96px",
      isLoose: true,
      cell: (rule) => {
        const words: Readonly<Record<string, string>> = field === "Action" ? t.firewall.actions : t.firewall.protocols;
        if (!mayWrite) return words[rule[field]];
        return (
          <select
            className={field === "Action" ? `input verdict ${rule.Action.toLowerCase()}` : "input"}
            aria-label={`${name} ${numberOf(rule)}`}
            value={rule[field]}
            onChange={({ target }) => onEdit((set) => editRule(set, rule.key, { [field]: target.value }))}
          >
            {options.map((option) => (
              <option key={option} value={option}>
                {words[option]}
              </option>
            ))}
          </select>
        );
      },
    });
    const input = (
      field: "Name" | "Source" | "SourcePort" | "Destination" | "DestinationPort",
      name: string,
      width: string,
    ) => ({
      id: field,
      name,
      width,
      isLoose: true,
      cell: (rule: Rule) => {
        const hasNoPorts = rule.Protocol === "Any" || rule.Protocol === "Icmp";
        if (!mayWrite) return <span className={field === "Name" ? "" : "mono"}>{rule[field]}</span>;
        return (
          <input
            className={field === "Name" ? "input" : "input mono"}
            aria-label={`${name} ${numberOf(rule)}`}
            aria-invalid={errors.has(`${rule.key}/${field}`) || undefined}
            title={errors.get(`${rule.key}/${field}`) ?? (rule[field].length > 12 ? rule[field] : undefined)}
            placeholder={field === "Name" ? t.firewall.unnamed : "any"}
            spellCheck={false}
            disabled={field.endsWith("Port") && hasNoPorts}
            value={rule[field]}
            onChange={({ target }) => onEdit((set) => editRule(set, rule.key, { [field]: target.value }))}
          />
        );
      },
    });
    return [
      {
        id: "number",
        name: t.firewall.number,
        width: mayWrite ? "64px" : "36px",
        isMain: true,
        isLoose: true,
        cell: (rule) => (
          <span className="line fixed tight">
            {handle(rule)}
            <span className="number muted">{numberOf(rule)}</span>
          </span>
        ),
      },
      select("Action", t.firewall.action, ruleActions),
      select("Protocol", t.firewall.protocol, ruleProtocols),
      input("Source", t.firewall.source, "minmax(104px, 1.5fr)"),
      ...(hasSourcePorts ? [input("SourcePort", t.firewall.sourcePort, "minmax(72px, 1.05fr)")] : []),
      input("Destination", t.firewall.destination, "minmax(104px, 1.5fr)"),
      input("DestinationPort", t.firewall.port, "minmax(72px, 0.95fr)"),
      input("Name", t.firewall.name, "minmax(110px, 2.2fr)"),
      {
        id: "hits",
        name: t.firewall.hits,
        width: "124px",
        isRight: true,
        cell: (rule) => {
          const { text, about } = hits(rule);
          return (
            <span className="line fixed end">
              {rate(rule)}
              <span title={about} className="muted">
                {text}
              </span>
            </span>
          );
        },
      },
      {
        id: "marks",
        name: t.common.state,
        isNameHidden: true,
        width: "36px",
        isMain: true,
        isLoose: true,
        cell: marks,
      },
      ...(mayWrite
        ? [
            {
              id: "buttons",
              name: t.common.more,
              isNameHidden: true,
              width: "56px",
              isMain: true,
              isLoose: true,
              cell: buttons,
            },
          ]
        : []),
    ];
  }, [t, format, mayWrite, hasSourcePorts, index, counters, errors, shadowed, decides, onEdit]);

  const empty = (
    <Empty icon="shield" title={t.firewall.empty}>
      {t.firewall.emptyAbout}
    </Empty>
  );
  if (!isNarrow || rules.length > mostListed)
    return (
      <DataTable
        label={t.firewall.rules}
        columns={columns}
        rows={rules}
        idOf={({ key }) => key}
        nameOf={({ Name }) => Name}
        rowClass={lookOf}
        empty={empty}
      />
    );
  if (rules.length === 0) return <div className="table">{empty}</div>;
  return (
    <ol className="rule-list table" aria-label={t.firewall.rules}>
      {rules.map((rule) => (
        <li key={rule.key} className={lookOf(rule)}>
          {handle(rule)}
          <div className="grow stack tight">
            <span className="line">
              <span className="number muted">{numberOf(rule)}</span>
              <State
                tone={rule.Action === "Allow" ? "good" : "bad"}
                icon={rule.Action === "Allow" ? "check" : "blocked"}
              >
                {t.firewall.actions[rule.Action]}
              </State>
              {marks(rule)}
              <strong className="break">{rule.Name}</strong>
            </span>
            <span className="small break sentence">{sentence(rule)}</span>
            {hits(rule).about !== "" && (
              <span className="line">
                <span className="muted small">{hits(rule).about}</span>
                {rate(rule)}
              </span>
            )}
          </div>
          {mayWrite && buttons(rule)}
        </li>
      ))}
    </ol>
  );
}
