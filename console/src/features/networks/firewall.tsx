/**
 * The firewall of a public network: rules that one edits and orders in a table, checked by the service as one types. Nothing is applied
 * before a review. A test packet shows which rule decides.
 */
import type { PublicNetwork } from "@brume/api/network.ts";
import { useCallback, useMemo, useRef, useState } from "react";
import { useData, useMay } from "../../data/data.tsx";
import { useDraft } from "../../data/draft.ts";
import { useAfterCheck, useDryRun } from "../../data/dryrun.ts";
import { errorsOf, errorText, withCapital } from "../../data/errortext.ts";
import {
  addRule,
  countChanges,
  moveRule,
  newKey,
  type RuleSet,
  removeRule,
  requestOf,
  ruleSetOf,
  setText,
  shadowedRules,
} from "../../data/firewall.ts";
import { blocksOutgoing } from "../../data/outgoing.ts";
import { draftAgain, draftName, type FirewallDraft, useRollBack } from "../../data/rollback.ts";
import { withoutField } from "../../texts/detail.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { ErrorBox, Note } from "../../ui/feedback.tsx";
import { Check, SelectField, useFieldInView } from "../../ui/field.tsx";
import { HeadAction, State } from "../../ui/page.tsx";
import { FirewallReview } from "./firewallreview.tsx";
import { PacketTest, type Verdict } from "./packettest.tsx";
import { RemovedRules } from "./removedrules.tsx";
import { RuleDialog } from "./ruledialog.tsx";
import { addPreset, RulePresets } from "./rulepresets.tsx";
import { RuleTable } from "./ruletable.tsx";
import { useRuleCounters } from "./traffic.ts";

export function FirewallEditor({ network }: { network: PublicNetwork }) {
  const t = useTexts();
  const { client } = useData();
  const mayWrite = useMay("network:write") && network.State !== "Deleting";
  const path = { id: network.Id };
  const stored = useMemo(() => ruleSetOf(network.Firewall), [network.Firewall]);
  const [draft, setDraft] = useDraft<FirewallDraft | null>(draftName(network.Id), null);
  const [editing, setEditing] = useState<{ readonly key: number; readonly isNew: boolean } | null>(null);
  const [isReviewing, setReviewing] = useState(false);
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [announced, setAnnounced] = useState("");
  const counters = useRuleCounters(network);
  const set = draft?.set ?? stored;
  const base = draft?.base ?? stored;
  const edit = (change: (set: RuleSet) => RuleSet): void =>
    setDraft((before) => {
      const next = change(before?.set ?? stored);
      const from = before?.base ?? stored;
      return setText(next) === setText(from) ? null : { base: from, set: next };
    });
  // What was not confirmed in time can be applied again.
  useRollBack(
    useMemo(() => [network], [network]),
    (now, rules) => setDraft((before) => before ?? draftAgain(now, rules)),
  );
  const count = useMemo(() => (draft === null ? 0 : countChanges(draft.base, draft.set)), [draft]);
  const shadowed = useMemo(() => shadowedRules(set.Rules), [set]);
  const isOutdated = draft !== null && setText(draft.base) !== setText(stored);
  const check = useDryRun(draft === null ? null : requestOf(set), (body, signal) =>
    client.configureFirewall({ path, body }, { dryRun: true, signal }),
  );
  const review = useAfterCheck(
    check,
    useCallback(() => setReviewing(count > 0), [count]),
  );
  const { errors, causes } = useMemo(() => {
    const labels: Readonly<Record<string, string>> = {
      Name: t.firewall.name,
      Source: t.firewall.source,
      SourcePort: t.firewall.sourcePort,
      Destination: t.firewall.destination,
      DestinationPort: t.firewall.port,
    };
    const found = new Map<string, string>();
    const sentences: string[] = [];
    for (const [pointer, whole] of Object.entries(draft === null ? {} : errorsOf(check.error, t))) {
      const [, index, field = ""] = /^\/Rules\/(\d+)(?:\/(\w+))?/.exec(pointer) ?? [];
      const rule = set.Rules[Number(index ?? -1)];
      if (rule === undefined) continue;
      const detail = withoutField(pointer, whole);
      found.set(`${rule.key}/${field}`, withCapital(detail));
      sentences.push(t.firewall.problem(Number(index) + 1, labels[field] ?? field, detail));
    }
    return { errors: found, causes: sentences.join(" ") };
  }, [check.error, set, draft, t]);
  // A drag began with the rules of an earlier time.
  const latest = useRef(set);
  latest.current = set;
  const move = (from: number, to: number): void => {
    const { Rules } = latest.current;
    const rule = Rules[from];
    if (rule === undefined || to < 0 || to >= Rules.length) return;
    edit((all) => moveRule(all, from, to));
    setAnnounced(t.firewall.moved(rule.Name || String(from + 1), to + 1, Rules.length));
  };
  const decides = set.Enabled ? (set.Rules[(verdict?.rule ?? 0) - 1]?.key ?? null) : null;
  const isCutOff = blocksOutgoing(set, network.CIDR) && !blocksOutgoing(base, network.CIDR);
  useFieldInView(count === 0 ? "" : "pending");
  const note = set.Enabled
    ? stored.Enabled
      ? null
      : t.firewall.stillOff
    : stored.Enabled
      ? t.firewall.stillOn
      : t.firewall.offNote;
  const decidesLast = verdict?.rule === null && set.Enabled;
  return (
    <div className="stack">
      {mayWrite && (
        <HeadAction>
          <Button
            icon="plus"
            kind="primary"
            onClick={() => {
              setEditing({ key: newKey(set), isNew: true });
              edit((all) => addRule(all));
            }}
          >
            {t.firewall.add}
          </Button>
        </HeadAction>
      )}
      <p className="muted">{t.firewall.about}</p>
      {isOutdated && <Note kind="warn">{t.firewall.changedMeanwhile}</Note>}
      <div className="otherwise">
        <Check
          label={t.firewall.enabled}
          disabled={!mayWrite}
          checked={set.Enabled}
          onChange={({ target }) => edit((all) => ({ ...all, Enabled: target.checked }))}
        />
      </div>
      {note !== null && <Note kind="warn">{note}</Note>}
      {isCutOff && (
        <Note kind="warn">
          {t.firewall.cutOff}
          {base.Rules.length > 0 && (
            <div className="line">
              <Button size="small" icon="plus" onClick={() => edit((all) => addPreset(all, "outgoing", t))}>
                {t.firewall.presetLabels.outgoing}
              </Button>
            </div>
          )}
        </Note>
      )}
      {mayWrite && <RulePresets base={base} set={set} onEdit={edit} />}
      {draft !== null && check.error !== null && (
        <ErrorBox text={{ ...errorText(check.error, t), ...(causes !== "" && { cause: causes }) }} />
      )}
      <RuleTable
        rules={set.Rules}
        counters={counters}
        base={base}
        errors={errors}
        shadowed={shadowed}
        decides={decides}
        mayWrite={mayWrite}
        onEdit={edit}
        onOpen={(key) => setEditing({ key, isNew: false })}
        onMove={move}
      />
      {mayWrite && <RemovedRules base={base} set={set} onEdit={edit} />}
      <div className={decidesLast ? "otherwise decides" : "otherwise"}>
        <SelectField
          label={t.firewall.otherwise}
          hint={t.firewall.otherwiseAbout}
          disabled={!mayWrite}
          value={set.DefaultRuleAction}
          options={[
            ["Deny", t.firewall.actions.Deny],
            ["Allow", t.firewall.actions.Allow],
          ]}
          onChange={({ target }) =>
            edit((all) => ({ ...all, DefaultRuleAction: target.value === "Allow" ? "Allow" : "Deny" }))
          }
        />
        {decidesLast && (
          <State tone={verdict.passes ? "good" : "bad"} icon="target">
            {t.firewall.decides}
          </State>
        )}
      </div>
      <PacketTest network={network} set={draft === null ? null : set} isOn={set.Enabled} onVerdict={setVerdict} />
      <div role="status" className="hidden-text">
        {announced}
      </div>
      {count > 0 && (
        <div className="bulk" role="toolbar" aria-label={t.firewall.pending(count)}>
          <strong className="number">{t.firewall.pending(count)}</strong>
          <div className="line">
            <Button size="small" onClick={() => setDraft(null)}>
              {t.firewall.discard}
            </Button>
            <Button
              size="small"
              kind="primary"
              isBusy={review.isWaiting}
              disabled={(check.error !== null && !check.isChecking) || isOutdated}
              onClick={review.start}
            >
              {t.firewall.review}
            </Button>
          </div>
        </div>
      )}
      {editing !== null && (
        <RuleDialog
          set={set}
          ruleKey={editing.key}
          isNew={editing.isNew}
          errors={errors}
          onEdit={edit}
          onDone={() => setEditing(null)}
          onCancel={() => {
            if (editing.isNew) edit((all) => removeRule(all, editing.key));
            setEditing(null);
          }}
        />
      )}
      {isReviewing && draft !== null && (
        <FirewallReview
          id={network.Id}
          base={draft.base}
          set={draft.set}
          isCutOff={isCutOff}
          onClose={() => setReviewing(false)}
          onDone={() => {
            setReviewing(false);
            setDraft(null);
          }}
        />
      )}
    </div>
  );
}
