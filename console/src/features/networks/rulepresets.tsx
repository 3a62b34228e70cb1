/** Common rules as buttons, for a network that has no rules yet. A second press removes the rule again. */
import { addRule, presets, type Rule, type RuleSet, removeRule } from "../../data/firewall.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";

interface RulePresetsProps {
  readonly set: RuleSet;
  readonly onEdit: (change: (set: RuleSet) => RuleSet) => void;
}

export function RulePresets({ set, onEdit }: RulePresetsProps) {
  const t = useTexts();
  return (
    <fieldset className="line" aria-label={t.firewall.presets}>
      <span className="muted">{t.firewall.presets}:</span>
      {(["ssh", "web", "outgoing"] as const).map((name) => {
        const part: Partial<Rule> = { ...presets[name], Action: "Allow", Name: t.firewall.presetNames[name] };
        const made = set.Rules.find((rule) =>
          Object.entries(part).every(([field, value]) => rule[field as keyof Rule] === value),
        );
        return (
          <Button
            key={name}
            size="small"
            icon={made === undefined ? "plus" : "check"}
            aria-pressed={made !== undefined}
            onClick={() => onEdit((all) => (made === undefined ? addRule(all, part) : removeRule(all, made.key)))}
          >
            {t.firewall.presetLabels[name]}
          </Button>
        );
      })}
    </fieldset>
  );
}
