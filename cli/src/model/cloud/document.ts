/** Reads a cloud file: YAML with positions, its schema, and the rules that a schema cannot express. */
import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { UsageError } from "../values.ts";
import { check, type Path, type Problem } from "./check.ts";
import { cloudSchema } from "./shape.ts";

/** An object of a file. */
export type Entry = Readonly<Record<string, unknown>> & {
  readonly Name: string;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly DCLocation?: string;
  readonly Image?: string;
};
/** A record of a file. */
export type RecordEntry = Entry & { readonly Type: string; readonly TTL?: number };

/** Content of a file. */
export interface Cloud {
  readonly Label?: string;
  readonly PublicNetworks?: readonly Entry[];
  readonly Networks?: readonly Entry[];
  readonly Servers?: readonly Entry[];
  readonly Domains?: readonly (Entry & { readonly Records?: readonly RecordEntry[] })[];
}

/** The lists of a file. */
export const kinds = ["PublicNetworks", "Networks", "Servers", "Domains"] as const;

/** The label of what belongs to a file. */
export const fileLabel = "brume/file";

/** A file that was read. */
export interface CloudFile {
  readonly cloud: Cloud;
  /** Returns an error that lists the problems with line and column. */
  error(problems: readonly Problem[]): UsageError;
}

type Document = ReturnType<typeof parseDocument>;

/** Returns the position of a value, or of the nearest value around it. */
function offsetOf(document: Document, path: Path, isKey: boolean): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const [index, part] of path.entries()) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (pair === undefined) break;
      const target = isKey && index === path.length - 1 ? pair.key : (pair.value ?? pair.key);
      if (isNode(pair.key) && pair.key.range) offset = pair.key.range[0];
      if (isNode(target) && target.range) offset = target.range[0];
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      if (isNode(node) && node.range) offset = node.range[0];
    } else break;
  }
  return offset;
}

/** Rules about names: unique in a list, and no label of the command itself. */
function checkNames(cloud: Cloud): Problem[] {
  const problems: Problem[] = [];
  for (const kind of kinds) {
    const seen = new Set<string>();
    for (const [index, { Name, Labels, ...rest }] of (cloud[kind] ?? []).entries()) {
      const key = kind === "Domains" ? Name.toLowerCase().replace(/\.$/, "") : Name;
      if (seen.has(key)) problems.push({ path: [kind, index, "Name"], message: `${kind} has "${Name}" twice.` });
      seen.add(key);
      const tunnels = (rest as { Tunnels?: Entry[] }).Tunnels?.map((one) => one.Name) ?? [];
      for (const [place, name] of tunnels.entries())
        if (tunnels.indexOf(name) < place)
          problems.push({ path: [kind, index, "Tunnels", place, "Name"], message: `Tunnels has "${name}" twice.` });
      if (Labels !== undefined && fileLabel in (Labels as object))
        problems.push({
          path: [kind, index, "Labels", fileLabel],
          isKey: true,
          message: `The label ${fileLabel} is set by Label at the top of the file.`,
        });
    }
  }
  return problems;
}

/** Reads the text of a file. `name`: for errors. Throws `UsageError` with all problems. */
export function readCloud(text: string, name: string): CloudFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false });
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${Math.max(line, 1)}:${Math.max(col, 1)}`;
  };
  const schemaRemedy = "brume apply --schema prints the JSON Schema of the file.";
  const failed = (found: readonly string[], remedy = schemaRemedy) =>
    new UsageError(
      found.length === 1 ? (found[0] ?? "") : `${name} has ${found.length} problems.`,
      remedy,
      found.length === 1 ? [] : found,
    );
  const placed = (problems: readonly Problem[]) =>
    problems.map(({ path, message, isKey = false }) => `${at(offsetOf(document, path, isKey))}: ${message}`);
  if (document.errors.length > 0) throw failed(document.errors.map(({ pos, message }) => `${at(pos[0])}: ${message}`));
  let value: unknown;
  try {
    value = document.toJS() ?? {};
  } catch (cause) {
    throw failed([`${name}: ${(cause as Error).message}`]);
  }
  const problems = check(cloudSchema, value);
  if (problems.length > 0) throw failed(placed(problems));
  const cloud = value as Cloud;
  const named = checkNames(cloud);
  if (named.length > 0) throw failed(placed(named));
  return { cloud, error: (found) => failed(placed(found), "Nothing was changed. Correct the file, and repeat.") };
}
