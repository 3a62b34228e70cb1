/** Rules for projects and tokens: effective quotas, validation of token fields, and matching of client addresses. */
import { type Quota, quotaNames, quotas } from "@brume/api/account.ts";
import type { FieldError } from "@brume/api/errors.ts";
import ipaddr from "ipaddr.js";
import { ApiError, fieldError } from "../../base/error.ts";

/** Limit per resource; units as in the contract (`api/src/account.ts`). */
export type Quotas = Readonly<Record<Quota, number>>;

/** Returns all quotas, in the order of the contract: the stored ones (those that an operator set), else the defaults. */
export function mergeQuotas(stored: Partial<Quotas>): Quotas {
  return Object.fromEntries(quotaNames.map((key) => [key, stored[key] ?? quotas[key].default])) as Quotas;
}

/** Parses the stored quotas, which contain only those that were set. */
const readQuotas = (stored: string): Partial<Quotas> =>
  stored === "{}" ? {} : (JSON.parse(stored) as Partial<Quotas>);

/** Throws `quota_exceeded`, with the numbers, if `used + wanted` exceeds the quota. `stored` is the project's column, JSON. */
export function requireQuota(stored: string, quota: Quota, used: number, wanted: number): void {
  const limit = readQuotas(stored)[quota] ?? quotas[quota].default;
  if (used + wanted <= limit) return;
  const free = Math.max(0, limit - used);
  throw new ApiError("quota_exceeded", `${quota}: wanted ${wanted}, free ${free}, limit ${limit}.`);
}

export interface CreateTokenInput {
  readonly Scopes?: readonly string[];
  readonly DomainID?: number;
  readonly RecordPattern?: string;
  readonly RecordTypes?: readonly string[];
  readonly ExpiresAt?: string;
  readonly AllowedFrom?: readonly string[];
}

/** Returns the errors of the fields of a token. References (project, domain) are checked by the route. `now` in ms since 1970. */
export function checkToken(input: CreateTokenInput, now: number): FieldError[] {
  const errors: FieldError[] = [];
  if (input.DomainID !== undefined) {
    input.Scopes?.forEach((scope, index) => {
      if (!scope.startsWith("dns:"))
        errors.push(
          fieldError(
            `/Scopes/${index}`,
            "value_not_allowed",
            `Scopes must be dns:read or dns:write if DomainID is given, not "${scope}".`,
          ),
        );
    });
  } else {
    for (const field of ["RecordPattern", "RecordTypes"] as const)
      if (input[field] !== undefined)
        errors.push(fieldError(`/${field}`, "fields_conflict", `${field} requires DomainID.`));
  }
  if (input.ExpiresAt !== undefined && Date.parse(input.ExpiresAt) <= now)
    errors.push(fieldError("/ExpiresAt", "out_of_range", `ExpiresAt must be in the future, not ${input.ExpiresAt}.`));
  if (
    input.RecordPattern !== undefined &&
    (/[\s<>/\\\p{Cc}]/u.test(input.RecordPattern) || input.RecordPattern.endsWith("."))
  )
    errors.push(
      fieldError(
        "/RecordPattern",
        "format_invalid",
        "RecordPattern must be an owner relative to the domain such as www, @ or _acme-challenge*, without final dot.",
      ),
    );
  input.AllowedFrom?.forEach((text, index) => {
    if (parseBlock(text) === null)
      errors.push(
        fieldError(
          `/AllowedFrom/${index}`,
          "format_invalid",
          `AllowedFrom must contain addresses or blocks such as 10.0.0.0/8, not "${text.slice(0, 64)}".`,
        ),
      );
  });
  return errors;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** A network address and its prefix length in bits. */
export type Block = readonly [Address, number];

/** Parses an IPv4 (four decimals) or IPv6 address with optional prefix length. Returns null for other texts. */
export function parseBlock(text: string): Block | null {
  const [address = "", length, ...rest] = text.split("/");
  if (rest.length > 0 || !(ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address))) return null;
  const parsed = ipaddr.parse(address);
  const bits = parsed.kind() === "ipv4" ? 32 : 128;
  if (length === undefined) return [parsed, bits];
  return /^\d{1,3}$/.test(length) && Number(length) <= bits ? [parsed, Number(length)] : null;
}

/** Returns whether one of the blocks contains the address. IPv4-mapped IPv6 addresses count as IPv4. */
export function isAllowedFrom(blocks: readonly Block[], address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const from = ipaddr.process(address);
  return blocks.some(([network, bits]) => network.kind() === from.kind() && from.match(network, bits));
}
