/** A plan for people, as a diff, and for programs, as JSON. */
import type { Style } from "../print/style.ts";
import { safe } from "../print/style.ts";
import type { Change, FieldChange, Op } from "./change.ts";
import { nouns } from "./state.ts";

const signs: Readonly<Record<Op, string>> = { Create: "+", Update: "~", Replace: "±", Delete: "-", Wait: "…" };

function valueText(value: unknown): string {
  if (typeof value === "string") return value.includes("\n") ? `${value.split("\n").length} lines` : value;
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  const pairs = Object.entries(value).map(([key, one]) => `${key}=${valueText(one)}`);
  return pairs.length === 0 ? "none" : pairs.join(" ");
}

function fieldLine({ field, before, after }: FieldChange, style: Style): string {
  if (before === null) return style.green(safe(`    + ${field}: ${valueText(after)}`));
  if (after === null) return style.red(safe(`    - ${field}: ${valueText(before)}`));
  return style.yellow(safe(`    ~ ${field}: ${valueText(before)} → ${valueText(after)}`));
}

/** Returns a change in words: `Create server web-1`. */
export const describe = ({ op, kind, name }: Pick<Change, "op" | "kind" | "name">): string =>
  op === "Wait" ? `Wait for ${nouns[kind]} ${name}` : `${op} ${nouns[kind]} ${name}`;

/** Returns the plan as a diff. */
export function planLines(changes: readonly Change[], style: Style): string[] {
  const paint: Readonly<Record<Op, (text: string) => string>> = {
    Create: style.green,
    Update: style.yellow,
    Replace: style.red,
    Delete: style.red,
    Wait: style.dim,
  };
  const more = {
    Replace: "  (its creation failed)",
    Wait: "  (it is being created)",
    Create: "",
    Update: "",
    Delete: "",
  };
  const lines = changes.flatMap((change) => [
    paint[change.op](safe(`${signs[change.op]} ${nouns[change.kind]} ${change.name}${more[change.op]}`)),
    ...change.fields.map((field) => fieldLine(field, style)),
  ]);
  const count = (...ops: Op[]) => changes.filter(({ op }) => ops.includes(op)).length;
  const sum = [
    [count("Create"), "to create"],
    [count("Update"), "to change"],
    [count("Replace"), "to replace"],
    [count("Delete"), "to delete"],
    [count("Wait"), "to wait for"],
  ].filter(([number]) => number !== 0);
  return [
    ...lines,
    ...(lines.length > 0 ? ["", `${sum.map((pair) => pair.join(" ")).join(", ")}.`] : ["Nothing to do."]),
  ];
}

/** Returns the plan as a value for programs. `State`: what became of a change in an apply. */
export function planValue(
  changes: readonly Change[],
  notes: readonly string[],
  stateOf?: (change: Change) => string,
): object {
  return {
    Changes: changes.map((change) => ({
      Op: change.op,
      Kind: change.kind,
      Name: change.name,
      ID: change.id,
      Fields: change.fields.map(({ field, before, after }) => ({ Field: field, Before: before, After: after })),
      ...(stateOf && { State: stateOf(change) }),
    })),
    Notes: notes,
  };
}
