/** Expands the body of a server group into its servers and plans them: all together, or each independently (docs/spec.md#server-group). */
import type { CreateBatchInput } from "@brume/api/batch.ts";
import { maxLabels } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { type CreateServerInput, hostNamePattern } from "@brume/api/serverinput.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import { checkServerInput, type Member, planServer, type References, type ServerSpec } from "./plan.ts";

const mostCharacters = 64;
const hostName = new RegExp(hostNamePattern, "u");

/** Returns the servers of the body in order. Throws `batch_form_invalid` unless exactly one of `Count`, `Names`, `Servers` is given. */
export function membersOf(body: Partial<CreateBatchInput>): Member[] {
  const { Count, Names, Servers, Policy: _, ...common } = body;
  const given = [Count, Names, Servers].filter((form) => form !== undefined).length;
  if (given !== 1)
    throw new ApiError(
      "batch_form_invalid",
      `Send exactly one of Count, Names and Servers, not ${given === 0 ? "none" : given}.`,
    );
  if (Names !== undefined)
    return Names.map((Name, index) => ({
      spec: { ...common, Name },
      at: (field) => (field === "Name" ? `/Names/${index}` : `/${field}`),
    }));
  if (Servers !== undefined)
    return Servers.map((own, index) => ({
      spec: { ...common, ...own, Labels: { ...common.Labels, ...own.Labels } },
      // A field that all servers share is in the body itself; an absent field is reported at the element.
      at: (field) => (own[field] === undefined && common[field] !== undefined ? "" : `/Servers/${index}`) + `/${field}`,
    }));
  return Array.from({ length: Count ?? 0 }, (_one, index) => ({
    spec: numbered(common, index + 1),
    at: (field) => `/${field}`,
  }));
}

/** Returns the input of one server: replaces `{n}` in names with the number; a name without `{n}` gets the number as a suffix. */
function numbered(spec: Partial<CreateServerInput>, number: number): Partial<CreateServerInput> {
  const put = (text: string) => text.replaceAll("{n}", String(number));
  const { Name, HostName, ...rest } = spec;
  return {
    ...rest,
    ...(Name !== undefined && { Name: Name.includes("{n}") ? put(Name) : `${Name}-${number}` }),
    ...(HostName !== undefined && { HostName: put(HostName) }),
  };
}

/** Returns the errors that the schema cannot express. `membersOf` reports an invalid form, and only if there are no other errors. */
export function checkBatch(body: Partial<CreateBatchInput>): FieldError[] {
  const forms = [body.Count, body.Names, body.Servers].filter((form) => form !== undefined);
  if (forms.length !== 1) return [];
  return unique(membersOf(body).flatMap((member) => [...checkNames(member), ...checkServerInput(member)]));
}

function checkNames({ spec, at }: Member): FieldError[] {
  const errors: FieldError[] = [];
  const { Name, HostName, Labels = {} } = spec;
  if (Name === undefined) errors.push(fieldError(at("Name"), "field_required", "Name is required."));
  else if (Array.from(Name).length > mostCharacters)
    errors.push(
      fieldError(at("Name"), "too_long", `Name must be at most ${mostCharacters} characters long, not "${Name}".`),
    );
  if (HostName && !hostName.test(HostName))
    errors.push(
      fieldError(
        at("HostName"),
        "format_invalid",
        `HostName must be 1-63 of a-z, 0-9 and -, without a hyphen at the ends, not "${HostName}".`,
      ),
    );
  const labels = Object.keys(Labels).length;
  if (labels > maxLabels)
    errors.push(fieldError(at("Labels"), "too_long", `Labels must have at most ${maxLabels} labels, not ${labels}.`));
  return errors;
}

/** Removes duplicates: an error in a field that all servers share occurs once per server. */
function unique(errors: readonly FieldError[]): FieldError[] {
  return [...new Map(errors.map((error) => [`${error.pointer} ${error.code}`, error])).values()];
}

/** A server of a group with its spec, or with the error that prevents it. */
export type Planned = { readonly index: number } & (
  | { readonly spec: ServerSpec; readonly error?: never }
  | { readonly spec?: never; readonly error: ApiError }
);

/** True if the error fails one server only: with `BestEffort`, an invalid field of an element of `Servers`. */
export const failsServerOnly = ({ Policy }: Partial<CreateBatchInput>, { pointer }: FieldError): boolean =>
  Policy === "BestEffort" && /^\/Servers\/\d+\//.test(pointer);

/** Plans each server independently, in order. `elementErrors` are errors of fields that were already found. */
export function planEach(
  members: readonly Member[],
  references: References,
  elementErrors: readonly FieldError[] = [],
): Planned[] {
  return members.map((member, index) => {
    const ofElement = elementErrors.filter(({ pointer }) => pointer.startsWith(`/Servers/${index}/`));
    if (ofElement.length > 0) return { index, error: invalidFields(ofElement) };
    try {
      return { index, spec: planServer(member, references) };
    } catch (error) {
      if (error instanceof ApiError) return { index, error };
      throw error;
    }
  });
}

/** Plans all servers together. Throws `validation_failed` with all errors of fields and references, else the first other error. */
export function planTogether(members: readonly Member[], references: References): ServerSpec[] {
  const planned = planEach(members, references);
  const errors = planned.flatMap(({ error }) => error ?? []);
  const invalid = unique(errors.flatMap((error) => (error.code === "validation_failed" ? error.errors : [])));
  if (invalid.length > 0) throw invalidFields(invalid);
  if (errors[0] !== undefined) throw errors[0];
  const specs = planned.flatMap(({ spec }) => spec ?? []);
  requireDistinctAddresses(specs);
  return specs;
}

/** Throws `address_taken` if two servers request the same address. */
function requireDistinctAddresses(specs: readonly ServerSpec[]): void {
  const wanted = new Set<string>();
  for (const { ip, network, location, ipPointer } of specs) {
    const place = `${network?.id ?? location} ${ip}`;
    if (ip !== null && wanted.has(place))
      throw errorAt("address_taken", ipPointer, `More than one server of the group requests ${ip}.`);
    wanted.add(place);
  }
}
