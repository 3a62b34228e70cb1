/** A group's body as the servers that it means, and their plans: all of them, or each for itself (docs/spec.md#server-group). */
import type { CreateBatchInput } from "@brume/api/batch.ts";
import { maxLabels } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { type CreateServerInput, hostNamePattern } from "@brume/api/server.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import { checkServerInput, type Member, planServer, type References, type ServerSpec } from "./plan.ts";

const mostCharacters = 64;
const hostName = new RegExp(hostNamePattern, "u");

/** The servers asked for, in order. Throws `batch_form_invalid`. */
export function membersOf(body: Partial<CreateBatchInput>): Member[] {
  const { Count, Names, Servers, Policy: _, ...common } = body;
  const given = [Count, Names, Servers].filter((form) => form !== undefined).length;
  if (given !== 1)
    throw new ApiError(
      "batch_form_invalid",
      `Count, Names, Servers: ${given === 0 ? "none" : given} of them are given.`,
    );
  if (Names !== undefined)
    return Names.map((Name, index) => ({
      spec: { ...common, Name },
      at: (field) => (field === "Name" ? `/Names/${index}` : `/${field}`),
    }));
  if (Servers !== undefined)
    return Servers.map((own, index) => ({
      spec: { ...common, ...own, Labels: { ...common.Labels, ...own.Labels } },
      // What every server has in common stands beside the list; what is missing is missing in it.
      at: (field) => (own[field] === undefined && common[field] !== undefined ? "" : `/Servers/${index}`) + `/${field}`,
    }));
  return Array.from({ length: Count ?? 0 }, (_one, index) => ({
    spec: numbered(common, index + 1),
    at: (field) => `/${field}`,
  }));
}

/** `{n}` in names is the number; a name without it gets it at the end. */
function numbered(spec: Partial<CreateServerInput>, number: number): Partial<CreateServerInput> {
  const put = (text: string) => text.replaceAll("{n}", String(number));
  const { Name, HostName, ...rest } = spec;
  return {
    ...rest,
    ...(Name !== undefined && { Name: Name.includes("{n}") ? put(Name) : `${Name}-${number}` }),
    ...(HostName !== undefined && { HostName: put(HostName) }),
  };
}

/** What a schema cannot say of the body. What is wrong with its form is said by `membersOf`, and only when nothing else is. */
export function checkBatch(body: Partial<CreateBatchInput>): FieldError[] {
  const forms = [body.Count, body.Names, body.Servers].filter((form) => form !== undefined);
  if (forms.length !== 1) return [];
  return once(membersOf(body).flatMap((member) => [...checkNames(member), ...checkServerInput(member)]));
}

function checkNames({ spec, at }: Member): FieldError[] {
  const faults: FieldError[] = [];
  const { Name, HostName, Labels = {} } = spec;
  if (Name === undefined) faults.push(fieldError(at("Name"), "field_required", "Name is required."));
  else if (Array.from(Name).length > mostCharacters)
    faults.push(
      fieldError(
        at("Name"),
        "too_long",
        `Name must be at most ${mostCharacters} characters long, which "${Name}" is not.`,
      ),
    );
  if (HostName && !hostName.test(HostName))
    faults.push(
      fieldError(
        at("HostName"),
        "format_invalid",
        `HostName must have 1-63 of a-z, 0-9 and -, no hyphen at the ends, which "${HostName}" has not.`,
      ),
    );
  const labels = Object.keys(Labels).length;
  if (labels > maxLabels)
    faults.push(fieldError(at("Labels"), "too_long", `Labels must have at most ${maxLabels} labels, not ${labels}.`));
  return faults;
}

/** Faults of fields that several servers share, each once. */
function once(faults: readonly FieldError[]): FieldError[] {
  return [...new Map(faults.map((fault) => [`${fault.pointer} ${fault.code}`, fault])).values()];
}

export type Planned = { readonly index: number } & (
  | { readonly spec: ServerSpec; readonly fault?: never }
  | { readonly spec?: never; readonly fault: ApiError }
);

/** With `BestEffort` what is wrong with a field of one of `Servers` refuses that one only. */
export const failsServerOnly = ({ Policy }: Partial<CreateBatchInput>, { pointer }: FieldError): boolean =>
  Policy === "BestEffort" && /^\/Servers\/\d+\//.test(pointer);

/** Each for itself, in order; `spared` are faults of their fields. */
export function planEach(
  members: readonly Member[],
  references: References,
  spared: readonly FieldError[] = [],
): Planned[] {
  return members.map((member, index) => {
    const own = spared.filter(({ pointer }) => pointer.startsWith(`/Servers/${index}/`));
    if (own.length > 0) return { index, fault: invalidFields(own) };
    try {
      return { index, spec: planServer(member, references) };
    } catch (fault) {
      if (fault instanceof ApiError) return { index, fault };
      throw fault;
    }
  });
}

/** All of them. Throws what is wrong with fields and references of any, all at once; else the first other fault. */
export function planTogether(members: readonly Member[], references: References): ServerSpec[] {
  const planned = planEach(members, references);
  const faults = planned.flatMap(({ fault }) => fault ?? []);
  const invalid = once(faults.flatMap((fault) => (fault.code === "validation_failed" ? fault.errors : [])));
  if (invalid.length > 0) throw invalidFields(invalid);
  if (faults[0] !== undefined) throw faults[0];
  const specs = planned.flatMap(({ spec }) => spec ?? []);
  requireDistinctAddresses(specs);
  return specs;
}

/** Throws `address_taken` when two want one address. */
function requireDistinctAddresses(specs: readonly ServerSpec[]): void {
  const wanted = new Set<string>();
  for (const { ip, network, location, ipPointer } of specs) {
    const place = `${network?.id ?? location} ${ip}`;
    if (ip !== null && wanted.has(place))
      throw errorAt("address_taken", ipPointer, `${ip} is wanted by more than one server of the group.`);
    wanted.add(place);
  }
}
