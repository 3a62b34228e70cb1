/**
 * Rules for the names of domains across projects. A domain excludes names above and below it in other projects, unless the operator reserved
 * the name, a claim proved it, or it is a public suffix. Callers that write hold `lockNames`.
 */

import { challengeLabel } from "@brume/api/claim.ts";
import { parse } from "tldts";
import { ApiError, errorAt } from "../base/error.ts";
import type { Reader, Tx } from "../store/db.ts";
import { listReservedAt, type ReservedName } from "./claimtable.ts";
import { sortKey } from "./model/served.ts";
import * as table from "./table.ts";

/** Returns the names above a name: `com` and `example.com` for `www.example.com`. */
function namesAbove(ascii: string): string[] {
  const names: string[] = [];
  for (let dot = ascii.indexOf("."); dot >= 0; dot = ascii.indexOf(".", dot + 1)) names.push(ascii.slice(dot + 1));
  return names;
}

/** Domains of other projects that exclude a name: the same name, names above and names below. Public suffixes exclude only themselves. */
export interface Rivals {
  readonly same: table.DomainRow | undefined;
  readonly above: readonly table.DomainRow[];
  readonly below: readonly table.DomainRow[];
  /** The domain of the project itself with this name. */
  readonly own: table.DomainRow | undefined;
}

/** Finds the rivals of a name; at most `max` of those below. */
export async function findRivals(db: Reader, project: number, ascii: string, max: number): Promise<Rivals> {
  const [related, below] = await Promise.all([
    table.findByNames(db, [ascii, ...namesAbove(ascii)]),
    isPublicSuffix(ascii) ? [] : table.listForeignBelow(db, sortKey(ascii), project, max),
  ]);
  const foreign = related.filter((domain) => domain.project_id !== project);
  return {
    same: foreign.find((domain) => domain.ascii === ascii),
    above: foreign.filter((domain) => domain.ascii !== ascii && !isPublicSuffix(domain.ascii)),
    below,
    own: related.find((domain) => domain.project_id === project && domain.ascii === ascii),
  };
}

/** Returns the closest reservation at or above a name. */
export async function findReservation(db: Reader, ascii: string): Promise<ReservedName | undefined> {
  const found = await listReservedAt(db, [ascii, ...namesAbove(ascii)]);
  return found.sort((a, b) => b.ascii.length - a.ascii.length)[0];
}

/**
 * Throws `domain_reserved` or `domain_public_suffix` for a name that the project cannot claim. Resolves to whether the operator reserved the
 * name for this project.
 */
export const requireOpenName = async (db: Reader, project: number, ascii: string): Promise<boolean> =>
  requireUnreserved(project, ascii, await findReservation(db, ascii));

function requireUnreserved(project: number, ascii: string, reserved: ReservedName | undefined): boolean {
  if (`.${ascii}`.includes(`.${challengeLabel}.`))
    throw errorAt(
      "domain_reserved",
      "/Name",
      `Names with the label ${challengeLabel} are reserved for the proof of claims.`,
    );
  if (reserved !== undefined && reserved.project_id !== project)
    throw errorAt("domain_reserved", "/Name", `The operator reserved ${reserved.ascii}.`);
  if (reserved === undefined && isPublicSuffix(ascii))
    throw errorAt(
      "domain_public_suffix",
      "/Name",
      `${ascii} is a public suffix: it contains domains of many owners. The operator may reserve it for a project.`,
    );
  return reserved !== undefined;
}

/** Throws `domain_exists`, `domain_not_available`, or the errors of `requireOpenName`, if the project cannot create this domain. */
export async function requireFreeName(tx: Tx, project: number, ascii: string): Promise<void> {
  const [{ own, same, above, below }, reserved] = await Promise.all([
    findRivals(tx, project, ascii, 1),
    findReservation(tx, ascii),
  ]);
  if (own !== undefined)
    throw errorAt(
      "domain_exists",
      "/Name",
      `The domain ${ascii} already exists in this project, with the id ${own.id}.`,
    );
  const isGranted = requireUnreserved(project, ascii, reserved);
  if (same === undefined && below.length === 0 && (isGranted || above.length === 0)) return;
  const sentence = `${ascii} is, contains or is inside a domain of another project. Its owner may claim it: POST /dns/claim.`;
  throw errorAt("domain_not_available", "/Name", sentence);
}

/** Returns why the project cannot claim the name, as a sentence; null: it can. */
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
 * Options for the public suffix list (publicsuffix.org): both sections apply, ICANN (`co.uk`) and private (`github.io`). A name with an
 * unknown top level (`internal`, `lan`) is no public suffix, nor is `home.arpa` (RFC 8375).
 */
const options = {
  allowPrivateDomains: true,
  extractHostname: false,
  validateHostname: false,
  detectIp: false,
} as const;

/** Returns whether the name (ASCII, lower case) is a public suffix. No project may create it: it would exclude all names below. */
function isPublicSuffix(ascii: string): boolean {
  if (ascii === "home.arpa") return false;
  const { publicSuffix, isIcann, isPrivate } = parse(ascii, options);
  return publicSuffix === ascii && (isIcann === true || isPrivate === true);
}
