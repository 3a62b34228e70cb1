/**
 * Common rules as buttons: open for a network that has no rules yet, folded for another, and without those that it has. A second press
 * removes the rule again.
 */
import { addRule, findPreset, presets, type RuleSet, removeRule } from "../../data/firewall.ts";
import { placeOfOutgoing } from "../../data/outgoing.ts";
import type { Texts } from "../../texts/en.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";

type Preset = keyof typeof presets;

/** Returns the set with a common rule, where it decides. */
export function addPreset(set: RuleSet, name: Preset, t: Texts): RuleSet {
  const part = { ...presets[name], Action: "Allow", Name: t.firewall.presetNames[name] } as const;
  return addRule(set, part, name === "outgoing" ? placeOfOutgoing(set) : 0);
}

interface RulePresetsProps {
  /** The set before the edits. */
  readonly base: RuleSet;
  readonly set: RuleSet;
  readonly onEdit: (change: (set: RuleSet) => RuleSet) => void;
}

export function RulePresets({ base, set, onEdit }: RulePresetsProps) {
  const t = useTexts();
  const offered = (["ssh", "web", "outgoing"] as const).filter((name) => findPreset(base, name) === undefined);
  if (offered.length === 0) return null;
  const buttons = offered.map((name) => {
    const made = findPreset(set, name);
    return (
      <Button
        key={name}
        size="small"
        icon={made === undefined ? "plus" : "check"}
        aria-pressed={made !== undefined}
        onClick={() => onEdit((all) => (made === undefined ? addPreset(all, name, t) : removeRule(all, made.key)))}
      >
        {t.firewall.presetLabels[name]}
      </Button>
    );
  });
  if (base.Rules.length === 0)
    return (
      <fieldset className="line" aria-label={t.firewall.presets}>
        <span className="muted">{t.firewall.presets}:</span>
        {buttons}
      </fieldset>
    );
  return (
    <details className="panel">
      <summary>{t.firewall.presets}</summary>
      <div className="body line">{buttons}</div>
    </details>
  );
}
