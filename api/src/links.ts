/**
 * Links between operations in the OpenAPI document: which operations a client can send next with the ids of a response. They follow from
 * paths and parameters, so a new operation has them too.
 */
import type { Link } from "./components.ts";
import { isChange, type Operation } from "./operation.ts";

interface Node {
  readonly properties?: Readonly<Record<string, unknown>>;
}

const parametersOf = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);

/** Returns the field with the id of a response, such as `ID`; undefined: it has none. */
function idField(op: Operation): string | undefined {
  const { properties = {} } = (op.answer ?? {}) as Node;
  const [first] = Object.keys(properties);
  return first !== undefined && /^I[Dd]$/.test(first) ? first : undefined;
}

/**
 * Returns the links of the successful response of an operation: to the operation that reads its result, and from one object to the
 * operations on this object.
 */
export function linksOf(name: string, op: Operation, table: Readonly<Record<string, Operation>>): Record<string, Link> {
  const own = parametersOf(op.path);
  const field = idField(op);
  const reader = op.resultOperation ?? (op.method === "GET" && op.etag === true ? name : undefined);
  const target = reader === undefined ? undefined : table[reader];
  if (reader === undefined || target === undefined) return {};
  const kinds = Object.values(target.params ?? {});
  const values = parametersOf(target.path).map((parameter, index, all): [string, string] | null => {
    // The last id is that of the object itself; the ones before are those of the request.
    if (index === all.length - 1 && field !== undefined) return [parameter, `$response.body#/${field}`];
    const same = own.find((one) => op.params?.[one] === target.params?.[parameter]);
    return same === undefined ? null : [parameter, `$request.path.${same}`];
  });
  if (values.includes(null)) return {};
  const parameters = Object.fromEntries(values as [string, string][]);
  const links: Record<string, Link> = {};
  for (const [other, next] of Object.entries(table)) {
    if (other === name || (op.answer === null && other !== reader)) continue;
    const names = parametersOf(next.path);
    const sameObject =
      names.length === kinds.length && names.every((one, index) => next.params?.[one] === kinds[index]);
    if (!sameObject && other !== reader) continue;
    // A link to the read from each change, and links to changes and lists from the read and the creation.
    const isEntry = own.length < names.length || op.method === "GET";
    if (other !== reader && !(isEntry && (isChange(next) || next.list === true || next.method === "GET"))) continue;
    const given = Object.values(parameters);
    links[other] = {
      operationId: other,
      description: next.summary,
      parameters: Object.fromEntries(names.map((one, index) => [one, given[index] ?? ""])),
    };
  }
  return links;
}
