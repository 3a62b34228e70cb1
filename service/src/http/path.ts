/**
 * Finds the operations of a request target (docs/spec.md#base-address-and-paths, rules 1-6). The target is hostile input, so routing never
 * throws and takes time linear in its length.
 */
import type { Method, Operation } from "@brume/api/operation.ts";
import { asciiLower, encodeHighBytes, percentDecode } from "./read/text.ts";

/** Result of routing a request target. */
export type Route<Name extends string = string> =
  | { readonly found: false; readonly reason: "path_not_readable" | "path_not_found" }
  | {
      readonly found: true;
      readonly operations: ReadonlyMap<Method, Name>;
      /** Methods for the header `Allow`. */
      readonly allow: readonly string[];
      /** Decoded texts by parameter name. They may not be valid ids. */
      readonly params: Readonly<Record<string, string>>;
      /** Raw query, without `?`. */
      readonly query: string;
      /** Canonical path: the same for all spellings. For `Link` and fingerprints. */
      readonly path: string;
    };

/** The operations of one path. */
interface Leaf<Name extends string> {
  readonly operations: Map<Method, Name>;
  readonly segments: readonly Segment[];
  /** The path, if it has no parameters. */
  readonly fixed: string | null;
  readonly methods: Set<string>;
  allow: readonly string[];
}

/** A literal as the contract spells it, or the name of a parameter. */
interface Segment {
  readonly literal: string | null;
  readonly parameter: string;
}

/** A node of the tree of paths: the segments and the operations after it. */
interface Branch<Name extends string> {
  readonly literals: Map<string, Branch<Name>>;
  parameter: Branch<Name> | null;
  leaf: Leaf<Name> | null;
}

const unreadable = { found: false, reason: "path_not_readable" } as const;
const unknown = { found: false, reason: "path_not_found" } as const;
const methodOrder = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];
const noParams: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Creates the function that routes request targets. A target has the form of node:http: bytes above 0x7f as Latin-1. Throws if two
 * operations have the same method and path.
 */
export function createRouter<Name extends string>(
  operations: Readonly<Record<Name, Operation>>,
): (target: string) => Route<Name> {
  const root: Branch<Name> = { literals: new Map(), parameter: null, leaf: null };
  for (const [name, operation] of Object.entries<Operation>(operations)) addOperation(root, name as Name, operation);

  return (target) => {
    const start = startOfPath(target);
    if (start < 0) return unreadable;
    const mark = target.indexOf("?", start);
    const query = mark < 0 ? "" : target.slice(mark + 1);
    const segments = readSegments(target.slice(start, mark < 0 ? undefined : mark));
    if (segments === null) return unreadable;
    const leaf = find(root, segments, 0);
    if (leaf === null) return unknown;
    const { operations, allow, fixed } = leaf;
    if (fixed !== null) return { found: true, operations, allow, params: noParams, query, path: fixed };
    const params: Record<string, string> = {};
    let path = "";
    leaf.segments.forEach(({ literal, parameter }, index) => {
      const text = segments[index] ?? "";
      if (literal === null) params[parameter] = text;
      path += `/${literal ?? canonical(text)}`;
    });
    return { found: true, operations, allow, params, query, path };
  };
}

function addOperation<Name extends string>(root: Branch<Name>, name: Name, operation: Operation): void {
  let branch = root;
  const segments: Segment[] = [];
  for (const text of operation.path.split("/").filter((part) => part !== "")) {
    const parameter = /^\{(.+)\}$/.exec(text)?.[1];
    branch = childOf(branch, parameter === undefined ? asciiLower(text) : null);
    segments.push(parameter === undefined ? { literal: text, parameter: "" } : { literal: null, parameter });
  }
  const fixed = segments.every(({ literal }) => literal !== null) ? operation.path : null;
  branch.leaf ??= { operations: new Map(), segments, fixed, methods: new Set(["OPTIONS"]), allow: [] };
  const { operations, methods } = branch.leaf;
  if (operations.has(operation.method))
    throw new Error(`${operation.method} ${operation.path} belongs to two operations.`);
  operations.set(operation.method, name);
  methods.add(operation.method);
  // The length of a stream is not known, so it supports no HEAD.
  if (operation.method === "GET" && operation.media !== "text/event-stream") methods.add("HEAD");
  branch.leaf.allow = methodOrder.filter((method) => methods.has(method));
}

function childOf<Name extends string>(branch: Branch<Name>, literal: string | null): Branch<Name> {
  const known = literal === null ? branch.parameter : branch.literals.get(literal);
  if (known) return known;
  const created: Branch<Name> = { literals: new Map(), parameter: null, leaf: null };
  if (literal === null) branch.parameter = created;
  else branch.literals.set(literal, created);
  return created;
}

/** Returns the position of the path, after scheme and authority of an absolute form (RFC 9112 section 3.2); -1: there is no path. */
function startOfPath(target: string): number {
  if (target.startsWith("/")) return 0;
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target)?.[0].length ?? -1;
}

/** Returns the decoded segments that are not empty; null if one is malformed or not UTF-8. */
function readSegments(path: string): string[] | null {
  const raw = path.split("/").filter((segment) => segment !== "");
  if (!/[^\x21-\x24\x26-\x7e]/.test(path)) return raw;
  const segments: string[] = [];
  for (const text of raw) {
    const segment = /[\u0100-\uffff]/.test(text) ? null : percentDecode(encodeHighBytes(text));
    if (segment === null) return null;
    segments.push(segment);
  }
  return segments;
}

/** Returns the leaf of the matching path. A literal segment takes precedence over a parameter. */
function find<Name extends string>(branch: Branch<Name>, segments: readonly string[], at: number): Leaf<Name> | null {
  const segment = segments[at];
  if (segment === undefined) return branch.leaf;
  const literal = branch.literals.get(asciiLower(segment));
  const leaf = literal ? find(literal, segments, at + 1) : null;
  return leaf ?? (branch.parameter ? find(branch.parameter, segments, at + 1) : null);
}

function canonical(parameter: string): string {
  return String(parseId(parameter) ?? encodeURIComponent(parameter));
}

const highestId = 2_147_483_647;

/** Parses an id of a path: 1 to 10 decimal digits, at most 2147483647. Returns null for any other text. */
export function parseId(text: string): number | null {
  if (!/^\d{1,10}$/.test(text)) return null;
  const id = Number(text);
  return id <= highestId ? id : null;
}
