/**
 * Reconciler of claims: looks up the proof of pending claims, and assigns the domain to the project that has proved its name. Domains of
 * other projects that the claim affects are withdrawn in the same transaction: their records are stored as a zone file, and both projects
 * receive an event.
 */
import { Resolver } from "node:dns/promises";
import { claimLimits } from "@brume/api/claim.ts";
import { requireQuota } from "../account/model/rules.ts";
import { findProject, lockProject } from "../account/table.ts";
import { type Clock, since } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import { append, type NewEvent } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import { sendReconcile } from "../engine/task.ts";
import { type Reader, reserveIds, type Store, type Tx } from "../store/db.ts";
import { fullZone, nextSerial } from "./apply.ts";
import * as claims from "./claimtable.ts";
import { proofOf, showClaim } from "./model/claimshow.ts";
import { relativeTo } from "./model/name.ts";
import { automaticSoa, sortKey } from "./model/served.ts";
import { maxInEvent, printedOf, showDomain } from "./model/show.ts";
import { stringsOf } from "./model/text.ts";
import { printZone } from "./model/zonefile/print.ts";
import { findRefusal, findReservation, findRivals } from "./names.ts";
import type { ZonePublisher } from "./publisher.ts";
import * as table from "./table.ts";

export interface ClaimReconcilerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly zones: ZonePublisher;
  readonly nameServers: readonly string[];
  /** Addresses of resolvers; empty: none; null: those of the host. */
  readonly resolvers: readonly string[] | null;
  /** The reconciler of new and withdrawn domains. */
  readonly delegation: Reconciler;
}

const second = 1000;
const minute = 60 * second;
const day = 1440 * minute;
/** Ms between two checks: a quarter of the age of the claim, at least 5 s and at most 10 min. */
const pauseOf = (created: number, now: number): number =>
  Math.min(10 * minute, Math.max(5 * second, since(created, now, minute) / 4));
/** Maximum ms to wait for the name server. */
const publishMs = 2 * second;
/** A claim that would withdraw more domains remains pending: the operator must intervene. */
const maxBelow = 1000;

/** Creates the reconciler; its subjects are claim ids. */
export function claimReconciler(options: ClaimReconcilerOptions): Reconciler {
  const { store, clock, zones, nameServers, resolvers } = options;
  return defineReconciler({
    name: "dns.claim",
    subject: "claim",
    period: 10 * minute,
    async run({ subject, signal }) {
      const claim = await claims.findAnyClaim(store.read, subject);
      if (claim === undefined || claim.state !== "Pending") return { gone: true };
      const found = await lookUp(claim, resolvers, signal);
      if (signal.aborted) return {};
      const decision = await store.write((tx) => decide(tx, options, subject, found));
      if (decision === "pending") return { at: clock.now() + pauseOf(claim.created, clock.now()) };
      if (decision === "ended") return { gone: true };
      const { domain, lost } = decision;
      for (const { ascii, serial } of lost) if (ascii !== domain.ascii) await zones.withdraw(ascii, serial, publishMs);
      if (domain.record_count === 0) await zones.publish(fullZone(domain, [], nameServers), publishMs);
      return { gone: true };
    },
  });
}

/** Result of the look-up; `detail` is shown in the claim. */
type Lookup = { readonly isFound: boolean; readonly detail: string };

/** Looks the record of the proof up in the public DNS. */
async function lookUp(
  claim: claims.ClaimRow,
  resolvers: readonly string[] | null,
  signal: AbortSignal,
): Promise<Lookup> {
  const { name, text } = proofOf(claim);
  const missing = (detail: string): Lookup => ({ isFound: false, detail });
  if (resolvers?.length === 0) return missing("No resolver is configured to look the record up.");
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  if (resolvers !== null) resolver.setServers(resolvers);
  const stop = () => resolver.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const found = await resolver.resolveTxt(name);
    if (found.some((strings) => strings.join("") === text)) return { isFound: true, detail: "The record was found." };
    return missing(`${name} has ${found.length} other TXT records.`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isAbsent = code === "ENOTFOUND" || code === "ENODATA";
    return missing(isAbsent ? `${name} has no TXT record.` : `${name} could not be looked up (${code ?? "unknown"}).`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Returns whether the domain of another project contains the record of the proof. Then that project consents to the claim. */
async function consents(db: Reader, rival: table.DomainRow, claim: claims.ClaimRow): Promise<boolean> {
  const { name, text } = proofOf(claim);
  const owner = relativeTo(name, rival.ascii);
  if (owner === null) return false;
  const records = await table.listAtNodes(db, rival.id, [sortKey(owner)]);
  return records.some((record) => record.type === "TXT" && stringsOf(record.value).join("") === text);
}

/** The claim remains pending, has ended, or was granted: its domain, and the withdrawn domains. */
type Decision = "pending" | "ended" | { readonly domain: table.DomainRow; readonly lost: readonly table.DomainRow[] };

/** Decides a pending claim. Takes the locks of all rows that the decision depends on. */
async function decide(tx: Tx, options: ClaimReconcilerOptions, id: number, found: Lookup): Promise<Decision> {
  await table.lockNames(tx);
  const claim = await claims.findAnyClaim(tx, id);
  if (claim === undefined || claim.state !== "Pending") return "ended";
  const now = options.clock.now();
  const { project_id: project, ascii } = claim;
  // Limits the rest of the term of a claim that was created before the clock was set back.
  const expires = Math.min(claim.expires, now + claimLimits.days * day);
  const isGranted = (await findReservation(tx, ascii))?.project_id === project;
  const isProven = isGranted || found.isFound;
  const { same, above, below } = await findRivals(tx, project, ascii, maxBelow + 1);
  const affected = [...(same === undefined ? [] : [same]), ...below.filter((domain) => domain.is_proven === 0)];

  const findObjection = async (): Promise<string | null> => {
    const refusal = await findRefusal(tx, project, ascii);
    if (refusal !== null) return refusal;
    if (affected.length > maxBelow) return `More than ${maxBelow} domains are below the name.`;
    if (isProven) return null;
    const owners = [...(same === undefined ? [] : [same]), ...above];
    if (owners.length === 0 || below.length > 0) return found.detail;
    for (const rival of owners) if (!(await consents(tx, rival, claim))) return found.detail;
    return null;
  };
  const update = async (state: "Pending" | "Failed", detail: string): Promise<Decision> => {
    const change = { state, detail, checked: now, expires, version: claim.version + 1 };
    const row = await claims.updateClaim(tx, id, change);
    if (state === "Pending") return "pending";
    await append(tx, [claimEvent(row, now)]);
    return "ended";
  };

  const reason = (await findObjection()) ?? (await findShortage(tx, claim));
  if (reason !== null) return update(now >= expires ? "Failed" : "Pending", reason);
  for (const rival of affected) await withdraw(tx, options, rival, claim, now);
  const domain = await assign(tx, options, claim, now, isProven);
  const row = await claims.updateClaim(tx, id, {
    state: "Completed",
    detail: isGranted ? "The operator reserved the name for this project." : "The record was found.",
    domain_id: domain.id,
    checked: now,
    version: claim.version + 1,
  });
  await append(tx, [claimEvent(row, now)]);
  return { domain, lost: affected };
}

/** Returns why the project cannot have another domain now, as a sentence; null: it can. */
async function findShortage(tx: Tx, claim: claims.ClaimRow): Promise<string | null> {
  await lockProject(tx, claim.project_id);
  const project = await findProject.first(tx, { id: claim.project_id });
  if (project === undefined || project.is_blocked === 1) return "The project is blocked.";
  const [existing] = await table.findByNames(tx, [claim.ascii]);
  if (existing?.project_id === claim.project_id) return null;
  try {
    requireQuota(project.quotas, "Domains", await table.countDomains(tx, claim.project_id), 1);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

const claimEvent = (row: claims.ClaimRow, now: number): NewEvent => ({
  type: "claim.changed",
  date: now,
  project: row.project_id,
  resource: "claim",
  id: row.id,
  data: JSON.stringify(showClaim(row)),
});

/** Withdraws a domain from its project. Its zone file remains readable there. */
async function withdraw(
  tx: Tx,
  { nameServers, delegation }: ClaimReconcilerOptions,
  { id }: table.DomainRow,
  claim: claims.ClaimRow,
  now: number,
): Promise<void> {
  await table.lockDomain(tx, id);
  const row = await table.findAnyDomain.first(tx, { id });
  if (row === undefined) return;
  const records = await table.listRecords(tx, id);
  const soa = automaticSoa(row.ascii, nameServers);
  await claims.insertWithdrawn(tx, {
    id,
    project_id: row.project_id,
    name: row.name,
    ascii: row.ascii,
    date: now,
    record_count: records.length,
    reason: `Another project proved that it owns ${claim.ascii}.`,
    zone_file: printZone(row, soa, row.serial, nameServers, records.map(printedOf)),
    labels: row.labels,
  });
  await table.deleteDomain(tx, row);
  sendReconcile(tx, delegation, id);
  const shown = showDomain(row, records.length > maxInEvent ? [] : records, row.serial, nameServers);
  const data = JSON.stringify(shown);
  await append(tx, [{ type: "domain.withdrawn", date: now, project: row.project_id, resource: "domain", id, data }]);
}

/** Returns the domain of the claim: the existing one of the project, or a new one without records. */
async function assign(
  tx: Tx,
  { nameServers, delegation }: ClaimReconcilerOptions,
  claim: claims.ClaimRow,
  now: number,
  isProven: boolean,
): Promise<table.DomainRow> {
  const [own] = await table.findByNames(tx, [claim.ascii]);
  if (own !== undefined) {
    await table.updateDomain(tx, own.id, { is_proven: 1 });
    return own;
  }
  const [retired, [id = 0]] = await Promise.all([
    table.findRetiredSerial(tx, claim.ascii),
    reserveIds(tx, "domain", 1),
  ]);
  const row: table.DomainRow = {
    id,
    project_id: claim.project_id,
    name: claim.name,
    ascii: claim.ascii,
    subtree: sortKey(claim.ascii),
    serial: nextSerial(retired, now),
    record_count: 0,
    is_delegate: 0,
    delegation: "Unknown",
    is_proven: Number(isProven),
    import_report: null,
    created: now,
    labels: "{}",
    version: 1,
  };
  table.addDomain(tx, row);
  sendReconcile(tx, delegation, id);
  const data = JSON.stringify(showDomain(row, [], row.serial, nameServers));
  await append(tx, [
    { type: "domain.created", date: now, project: row.project_id, resource: "domain", id: row.id, data },
  ]);
  return row;
}
