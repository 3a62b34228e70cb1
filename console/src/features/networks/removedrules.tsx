/** The rules that the user has deleted and not applied yet. Each can be kept. */
import { useMemo } from "react";
import { type RuleSet, removedRules, restoreRule } from "../../data/firewall.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { useSentence } from "./sentence.ts";

interface RemovedRulesProps {
  readonly base: RuleSet;
  readonly set: RuleSet;
  readonly onEdit: (change: (set: RuleSet) => RuleSet) => void;
}

/** Rules that are listed. If more are missing, other rules were loaded, and the review shows the difference. */
const mostListed = 100;

export function RemovedRules({ base, set, onEdit }: RemovedRulesProps) {
  const t = useTexts();
  const sentence = useSentence();
  const removed = useMemo(() => removedRules(base, set), [base, set]);
  if (removed.length === 0 || removed.length > mostListed) return null;
  return (
    <ul className="rule-list table" aria-label={t.firewall.removed}>
      {removed.map((rule) => (
        <li key={rule.key} className="removed">
          <del className="grow break">
            {t.firewall.actions[rule.Action]} · {rule.Name !== "" && `${rule.Name} · `}
            {sentence(rule)}
          </del>
          <Button
            kind="quiet"
            size="small"
            icon="undo"
            aria-label={t.firewall.restore(rule.key, rule.Name)}
            onClick={() => onEdit((now) => restoreRule(base, now, rule))}
          />
        </li>
      ))}
    </ul>
  );
}
