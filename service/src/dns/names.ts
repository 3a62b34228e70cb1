/**
 * Which names a project may have. A name excludes those above and below it in other projects, unless the operator reserved it, its
 * owner proved it by a claim, or it is a public suffix. Callers that write hold `lockNames`.
 */

import { challengeLabel } from "@brume/api/claim.ts";
import { parse } from "tldts";
import { ApiError, errorAt } from "../base/error.ts";
import type { Reader, Tx } from "../store/db.ts";
import { listReservedAt, type ReservedName } from "./claimtable.ts";
import { sortKey } from "./model/served.ts";
import * as table from "./table.ts";

/** `com`, `example.com`: the names above a name. */
function namesAbove(ascii: string): string[] {
  const names: string[] = [];
  for (let dot = ascii.indexOf("."); dot >= 0; dot = ascii.indexOf(".", dot + 1)) names.push(ascii.slice(dot + 1));
  return names;
}

/** Domains of other projects that exclude this name, by where they are. Those of public suffixes exclude nothing but themselves. */
export interface Rivals {
  readonly same: table.DomainRow | undefined;
  readonly above: readonly table.DomainRow[];
  readonly below: readonly table.DomainRow[];
}

/** `most` of the domains below are enough. */
export async function findRivals(db: Reader, project: number, ascii: string, most: number): Promise<Rivals> {
  const related = await table.findByNames(db, [ascii, ...namesAbove(ascii)]);
  const foreign = related.filter((domain) => domain.project_id !== project);
  return {
    same: foreign.find((domain) => domain.ascii === ascii),
    above: foreign.filter((domain) => domain.ascii !== ascii && !isPublicSuffix(domain.ascii)),
    below: isPublicSuffix(ascii) ? [] : await table.listForeignBelow(db, sortKey(ascii), project, most),
  };
}

/** The deepest reservation at or above a name. */
export async function findReservation(db: Reader, ascii: string): Promise<ReservedName | undefined> {
  const found = await listReservedAt(db, [ascii, ...namesAbove(ascii)]);
  return found.sort((a, b) => b.ascii.length - a.ascii.length)[0];
}

/**
 * Throws `domain_reserved` or `domain_public_suffix` for names that the project cannot even claim. True: the operator reserved the
 * name for this project.
 */
export async function requireOpenName(db: Reader, project: number, ascii: string): Promise<boolean> {
  if (`.${ascii}`.includes(`.${challengeLabel}.`))
    throw errorAt(
      "domain_reserved",
      "/Name",
      `Names with the label ${challengeLabel} are kept for the proof of claims.`,
    );
  const reserved = await findReservation(db, ascii);
  if (reserved !== undefined && reserved.project_id !== project)
    throw errorAt("domain_reserved", "/Name", `The operator reserved ${reserved.ascii}.`);
  if (reserved === undefined && isPublicSuffix(ascii))
    throw errorAt(
      "domain_public_suffix",
      "/Name",
      `${ascii} is a public suffix: domains of many owners lie below it. The operator may reserve it for a project.`,
    );
  return reserved !== undefined;
}

/** Throws the fault why the project cannot create a domain of this name. */
export async function requireFreeName(tx: Tx, project: number, ascii: string): Promise<void> {
  const [own] = (await table.findByNames(tx, [ascii])).filter((domain) => domain.project_id === project);
  if (own !== undefined) throw errorAt("domain_exists", "/Name", `Domain ${own.id} has the name ${ascii}.`);
  const isGranted = await requireOpenName(tx, project, ascii);
  const { same, above, below } = await findRivals(tx, project, ascii, 1);
  if (same === undefined && below.length === 0 && (isGranted || above.length === 0)) return;
  const sentence = `${ascii} is, contains or lies inside a domain that is taken. Its owner may claim it: POST /dns/claim.`;
  throw errorAt("domain_not_available", "/Name", sentence);
}

/** The fault of a name that a claim cannot have (any more), as a sentence; null: there is none. */
export async function findRefusal(db: Reader, project: number, ascii: string): Promise<string | null> {
  try {
    await requireOpenName(db, project, ascii);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/**
 * For public suffixes (publicsuffix.org): both sections count, `co.uk` of ICANN and `github.io` of a company. A name whose top level
 * the list does not know is private (`internal`, `lan`), and so is `home.arpa` (RFC 8375).
 */
const options = {
  allowPrivateDomains: true,
  extractHostname: false,
  validateHostname: false,
  detectIp: false,
} as const;

/** No project may have such a name, for it would have all names below. `ascii`: a name as domains have it, in lower case. */
export function isPublicSuffix(ascii: string): boolean {
  if (ascii === "home.arpa") return false;
  const { publicSuffix, isIcann, isPrivate } = parse(ascii, options);
  return publicSuffix === ascii && (isIcann === true || isPrivate === true);
}
