/**
 * Bodies of the type `application/x-www-form-urlencoded` (WHATWG URL section 5.1) and queries. A form is flat, so its names carry
 * the structure: `SshKeys[]`, `Labels[env]`, `Rules[0].Name`. Here they become a tree that knows no schema; reading decides
 * which branch is a list, a map or an object.
 */
import { ApiError } from "../../base/error.ts";
import { maxDepth } from "./json.ts";
import { asciiLower, percentDecode } from "./text.ts";

const branch = Symbol("branch");

export interface FormNode {
  readonly [branch]: true;
  /** What was given under this very name, in order; `Name[]` counts as `Name`. */
  readonly values: string[];
  /** What was given below it, by name or index, in order of the last mention. */
  parts: Map<string, FormNode> | null;
}

export function createNode(): FormNode {
  return { [branch]: true, values: [], parts: null };
}

export function isFormNode(value: unknown): value is FormNode {
  return typeof value === "object" && value !== null && branch in value;
}

const noParts: ReadonlyMap<string, FormNode> = new Map();
export function partsOf(node: FormNode): ReadonlyMap<string, FormNode> {
  return node.parts ?? noParts;
}

/** The node below `parent`, moved to the end, since of several spellings of one name the last mentioned counts. */
export function reach(parent: FormNode, name: string): FormNode {
  parent.parts ??= new Map();
  let node = parent.parts.get(name);
  if (node === undefined) node = createNode();
  else parent.parts.delete(name);
  parent.parts.set(name, node);
  return node;
}

/** `Rules[0][Name]` and `Rules[0].Name` are Rules, 0, Name. A name whose brackets make no sense is one plain name. */
export function splitName(name: string): string[] {
  const head = /^[^.[\]]+/.exec(name)?.[0];
  if (head === undefined || head.length === name.length) return [name];
  const steps = [head];
  const step = /\[([^[\]]*)\]|\.([^.[\]]+)/y;
  step.lastIndex = head.length;
  while (step.lastIndex < name.length) {
    const found = step.exec(name);
    if (found === null) return [name];
    steps.push(found[1] ?? found[2] ?? "");
  }
  if (steps.at(-1) === "") steps.pop();
  return steps;
}

/** Raw pairs of `a=1&b=2`; a name without `=` has the value null. Empty pairs are left out. */
export function* splitPairs(text: string): Generator<readonly [name: string, value: string | null]> {
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    yield equals < 0 ? [pair, null] : [pair.slice(0, equals), pair.slice(equals + 1)];
  }
}

/** `+` is a space; null if it is malformed or not UTF-8. */
export function decodePart(text: string): string | null {
  return percentDecode(text.includes("+") ? text.replaceAll("+", " ") : text);
}

/**
 * Fields get their names in lower case, so that `Keys=1&keys=2` is one list; not so if `strict`, where each spelling is a field of
 * its own. Throws `body_not_readable`.
 */
export function parseForm(text: string, strict: boolean): FormNode {
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
    for (const step of steps) node = reach(node, step);
    node.values.push(value);
  }
  return root;
}
