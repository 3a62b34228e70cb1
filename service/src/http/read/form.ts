/**
 * Parses queries and bodies of the type `application/x-www-form-urlencoded` (WHATWG URL section 5.1). A form is flat, so its names contain
 * the structure: `SshKeys[]`, `Labels[env]`, `Rules[0].Name`. They become a tree without schema; `readFields` decides which branch is a
 * list, a map or an object.
 */
import { ApiError } from "../../base/error.ts";
import { runAtOnce } from "../../base/turn.ts";
import { maxDepth, maxFields } from "./json.ts";
import { asciiLower, percentDecode } from "./text.ts";

const branch = Symbol("branch");

/** A node of the tree: the values of a name, and the names below it. */
export interface FormNode {
  readonly [branch]: true;
  /** Values of this name, in order; `Name[]` counts as `Name`. */
  readonly values: string[];
  /** Nodes below it, by name or index, in the order of their last occurrence. */
  parts: Map<string, FormNode> | null;
}

/** Creates an empty node. */
export function createNode(): FormNode {
  return { [branch]: true, values: [], parts: null };
}

/** Returns true for a node of a form. */
export function isFormNode(value: unknown): value is FormNode {
  return typeof value === "object" && value !== null && branch in value;
}

const noParts: ReadonlyMap<string, FormNode> = new Map();
/** Returns the nodes below `node`. */
export function partsOf(node: FormNode): ReadonlyMap<string, FormNode> {
  return node.parts ?? noParts;
}

/** Returns the node `name` below `parent` and moves it to the end, because the last of several spellings of a name counts. */
export function reach(parent: FormNode, name: string): FormNode {
  parent.parts ??= new Map();
  let node = parent.parts.get(name);
  if (node === undefined) node = createNode();
  else parent.parts.delete(name);
  parent.parts.set(name, node);
  return node;
}

/**
 * Splits `Rules[0][Name]` or `Rules[0].Name` into Rules, 0, Name. A name with malformed brackets is not split. Steps beyond the first too
 * many are not read.
 */
export function splitName(name: string): string[] {
  const head = /^[^.[\]]+/.exec(name)?.[0];
  if (head === undefined || head.length === name.length) return [name];
  const steps = [head];
  const step = /\[([^[\]]*)\]|\.([^.[\]]+)/y;
  step.lastIndex = head.length;
  while (step.lastIndex < name.length && steps.length <= maxDepth) {
    const found = step.exec(name);
    if (found === null) return [name];
    steps.push(found[1] ?? found[2] ?? "");
  }
  if (steps.at(-1) === "") steps.pop();
  return steps;
}

/** Iterates over the raw pairs of `a=1&b=2`. A name without `=` has the value null; empty pairs are skipped. */
export function* splitPairs(text: string): Generator<readonly [name: string, value: string | null]> {
  for (let start = 0, end = 0; end < text.length; start = end + 1) {
    end = text.indexOf("&", start);
    if (end < 0) end = text.length;
    if (end === start) continue;
    const pair = text.slice(start, end);
    const equals = pair.indexOf("=");
    yield equals < 0 ? [pair, null] : [pair.slice(0, equals), pair.slice(equals + 1)];
  }
}

/** Decodes a name or value; `+` is a space. Returns null if it is malformed or not UTF-8. */
export function decodePart(text: string): string | null {
  return percentDecode(text.includes("+") ? text.replaceAll("+", " ") : text);
}

const tooMany = (): ApiError =>
  new ApiError("body_not_readable", `The form has more than ${maxFields} different names below one name.`);

/**
 * Parses a form. Names of fields are converted to lower case, so `Keys=1&keys=2` is one list; with `strict` each spelling is a separate
 * field. Throws `body_not_readable`.
 */
export const parseForm = (text: string, strict: boolean): FormNode => runAtOnce(parseFormInTurns(text, strict));

/** The same, with a yield after each pair. */
export function* parseFormInTurns(text: string, strict: boolean): Generator<void, FormNode> {
  if (!text.includes("=")) throw new ApiError("body_not_readable", "The body is neither JSON nor a form.");
  const root = createNode();
  for (const [rawName, rawValue] of splitPairs(text)) {
    const name = decodePart(rawName);
    const value = decodePart(rawValue ?? "");
    if (name === null || value === null)
      throw new ApiError("body_not_readable", "The form is not percent-encoded UTF-8.");
    const [field = "", ...steps] = splitName(name);
    if (steps.length >= maxDepth) throw new ApiError("body_not_readable", `The form has more than ${maxDepth} levels.`);
    let node = reach(root, strict ? field : asciiLower(field));
    for (const step of steps) {
      if ((node.parts?.size ?? 0) >= maxFields) throw tooMany();
      node = reach(node, step);
    }
    if ((root.parts?.size ?? 0) > maxFields) throw tooMany();
    node.values.push(value);
    yield;
  }
  return root;
}
