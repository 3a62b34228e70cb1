/** Shows by a dry run what the new rules change. Applies them permanently, or until the time for their confirmation has passed. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { type DiffLine, diffRules, movesOf, type RuleSet, requestOf, ruleSetOf, setText } from "../../data/firewall.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { rollBackKey } from "../../data/rollback.ts";
import { useUndo } from "../../data/undo.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { ErrorBox, Note, Skeleton } from "../../ui/feedback.tsx";
import { SelectField } from "../../ui/field.tsx";
import { useDropToasts } from "../../ui/toast.tsx";
import { useSentence } from "./sentence.ts";

const safeties = { s60: 60, s300: 300, s1800: 1800, none: null } as const;
type Safety = keyof typeof safeties;
const safetyNames = Object.keys(safeties) as Safety[];

interface ReviewProps {
  readonly id: number;
  readonly base: RuleSet;
  readonly set: RuleSet;
  /** The servers could no longer open connections to the outside. */
  readonly isCutOff: boolean;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function FirewallReview({ id, base, set, isCutOff, onClose, onDone }: ReviewProps) {
  const t = useTexts();
  const { client, trials } = useData();
  const drop = useDropToasts();
  const [safety, setSafety] = useState<Safety>("s60");
  const [isConflict, setConflict] = useState(false);
  const undo = useUndo();
  const path = { id };
  const within = safeties[safety];
  const body = { ...requestOf(set), ...(within !== null && { ConfirmWithin: within }) };
  const preview = useQuery({
    queryKey: ["firewallpreview", id, setText(set)],
    queryFn: ({ signal }) => client.configureFirewall({ path, body: requestOf(set) }, { dryRun: true, signal }),
    gcTime: 0,
  });
  const { run, isBusy, error } = useChange(
    async () => {
      const { answer, etag } = await client.raw.readPublicNetwork({ path });
      if (setText(ruleSetOf(answer.Firewall)) !== setText(base)) {
        setConflict(true);
        return null;
      }
      return client.configureFirewall({ path, body }, { wait: 5, ...(etag !== null && { ifMatch: etag }) });
    },
    {
      // The notice of rules on trial is on every page until they are confirmed or rolled back.
      done: (made) => (made === null || within !== null ? undefined : t.firewall.applied),
      // Rules on trial are restored by the service.
      undo: (made) =>
        made === null || within !== null
          ? undefined
          : {
              run: undo({
                read: () => client.raw.readPublicNetwork({ path }),
                isSame: (now) => setText(ruleSetOf(now.Firewall)) === setText(ruleSetOf(made.Firewall)),
                write: (options) => client.configureFirewall({ path, body: requestOf(base) }, options),
              }),
              done: t.firewall.restored(made.Name),
              of: `publicnetwork:${id}`,
            },
      onDone(made) {
        if (made === null) return;
        if (within === null) trials.delete(id);
        else trials.set(id, setText(ruleSetOf(made.Firewall)));
        drop(({ key }) => key === rollBackKey(id));
        onDone();
      },
      isQuiet: true,
    },
  );
  const after = preview.data && ruleSetOf(preview.data.Firewall);
  return (
    <Dialog label={t.firewall.reviewTitle} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={t.firewall.reviewTitle} onClose={onClose} />
        <p className="muted">{t.firewall.reviewAbout}</p>
        {isConflict && <Note kind="warn">{t.firewall.changedMeanwhile}</Note>}
        {isCutOff && <Note kind="warn">{t.firewall.cutOff}</Note>}
        {(preview.error ?? error) && <ErrorBox text={errorText(preview.error ?? error, t)} />}
        {after ? <RuleDiff before={base} after={after} /> : !preview.error && <Skeleton lines={4} />}
        <SelectField
          label={t.firewall.safety}
          hint={t.firewall.safetyHint}
          value={safety}
          options={safetyNames.map((name) => [name, t.firewall.safeties[name]])}
          onChange={({ target }) => setSafety(target.value as Safety)}
        />
        <RequestPanel request={{ operation: "configureFirewall", path, body }} />
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button
            kind="primary"
            isBusy={isBusy}
            disabled={after === undefined || isConflict}
            onClick={() => void run(undefined).catch(() => undefined)}
          >
            {t.firewall.apply}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** Unchanged lines that are shown around a change. */
const context = 1;

function RuleDiff({ before, after }: { before: RuleSet; after: RuleSet }) {
  const t = useTexts();
  const sentence = useSentence();
  const lines = diffRules(before.Rules, after.Rules);
  const moves = movesOf(lines);
  const moved = ({ kind }: DiffLine, index: number): string => {
    const other = moves.get(index);
    if (other === undefined) return "";
    return ` ${kind === "add" ? t.firewall.movedFrom(other) : t.firewall.movedTo(other)}`;
  };
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== "keep");
  // A single line takes no more space than the mark of those left out.
  const isShown = (index: number): boolean => isNear(index) || (isNear(index - 1) && isNear(index + 1));
  const settings = ({ Enabled, DefaultRuleAction }: RuleSet): string =>
    t.firewall.settings(Enabled ? t.firewall.on : t.firewall.off, t.firewall.actions[DefaultRuleAction]);
  const hasSettings = settings(before) !== settings(after);
  if (!hasSettings && lines.every(({ kind }) => kind === "keep")) return <p>{t.firewall.noDiff}</p>;
  const sign = { keep: " ", add: "+", remove: "−" } as const;
  // The number of a removed rule is that of another one now.
  const numberOf = (line: DiffLine, index: number): string =>
    line.kind === "remove" && !moves.has(index) ? "" : `${line.number}. `;
  const textOf = ({ rule }: DiffLine): string =>
    `${t.firewall.actions[rule.Action]} ${sentence(rule)}${rule.Name === "" ? "" : ` (${rule.Name})`}`;
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={t.firewall.reviewTitle}>
      {lines.map((line, index) =>
        isShown(index) ? (
          <div key={index} className={line.kind}>
            {sign[line.kind]} {numberOf(line, index)}
            {textOf(line)}
            <strong>{moved(line, index)}</strong>
          </div>
        ) : (
          (index === 0 || isShown(index - 1)) && (
            <div key={index} className="muted">
              …
            </div>
          )
        ),
      )}
      {hasSettings && (
        <>
          <div className="remove">− {settings(before)}</div>
          <div className="add">+ {settings(after)}</div>
        </>
      )}
    </div>
  );
}
