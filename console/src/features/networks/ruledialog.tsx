/** All fields of one rule. What is typed is part of the edits at once; the review applies them. */
import { ruleActions, ruleProtocols } from "@brume/api/firewall.ts";
import { editRule, type Rule, type RuleSet } from "../../data/firewall.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { useSentence } from "./sentence.ts";

interface RuleDialogProps {
  readonly set: RuleSet;
  readonly ruleKey: number;
  /** The rule was added when the dialog opened. */
  readonly isNew: boolean;
  readonly errors: ReadonlyMap<string, string>;
  readonly onEdit: (change: (set: RuleSet) => RuleSet) => void;
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

export function RuleDialog({ set, ruleKey, isNew, errors, onEdit, onDone, onCancel }: RuleDialogProps) {
  const t = useTexts();
  const sentence = useSentence();
  const index = set.Rules.findIndex(({ key }) => key === ruleKey);
  const rule = set.Rules[index];
  if (rule === undefined) return null;
  const hasPorts = rule.Protocol !== "Any" && rule.Protocol !== "Icmp";
  const title = isNew ? t.firewall.add : t.firewall.edit(index + 1);
  const change = (part: Partial<Rule>): void => onEdit((all) => editRule(all, ruleKey, part));
  const field = (
    name: "Name" | "Source" | "SourcePort" | "Destination" | "DestinationPort",
    label: string,
    hint = "",
  ) => (
    <TextField
      label={label}
      {...(hint !== "" && { hint })}
      error={errors.get(`${ruleKey}/${name}`)}
      spellCheck={false}
      disabled={name.endsWith("Port") && !hasPorts}
      value={rule[name]}
      onChange={({ target }) => change({ [name]: target.value })}
    />
  );
  return (
    <Dialog label={title} kind="wide" onClose={onCancel}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onDone();
        }}
      >
        <DialogHead title={title} onClose={onCancel} />
        {field("Name", t.firewall.name)}
        <div className="columns">
          <SelectField
            label={t.firewall.action}
            value={rule.Action}
            options={ruleActions.map((name) => [name, t.firewall.actions[name]])}
            onChange={({ target }) => change({ Action: target.value as Rule["Action"] })}
          />
          <SelectField
            label={t.firewall.protocol}
            value={rule.Protocol}
            options={ruleProtocols.map((name) => [name, t.firewall.protocols[name]])}
            onChange={({ target }) => change({ Protocol: target.value as Rule["Protocol"] })}
          />
        </div>
        <div className="columns">
          {field("Source", t.firewall.source, t.firewall.addressHint)}
          {field("SourcePort", t.firewall.sourcePort, t.firewall.portHint)}
        </div>
        <div className="columns">
          {field("Destination", t.firewall.destination, t.firewall.addressHint)}
          {field("DestinationPort", t.firewall.port, t.firewall.portHint)}
        </div>
        <p className="muted break sentence">{sentence(rule)}</p>
        <div className="line end">
          {isNew && <Button onClick={onCancel}>{t.common.cancel}</Button>}
          <Button type="submit" kind="primary">
            {isNew ? t.firewall.add : t.firewall.done}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
