/** Route handlers for claims, withdrawn domains and reserved names: list, create, read, delete. */
import { claimLimits } from "@brume/api/claim.ts";
import type { Labels } from "@brume/api/common.ts";
import { findProject, lockProject } from "../account/table.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../base/error.ts";
import type { Reconciler } from "../engine/flow.ts";
import { type Ended, endedWithin, requestReconcile } from "../engine/task.ts";
import type { Caller, Handlers } from "../http/handler.ts";
import { type Facets, takePage } from "../http/list.ts";
import type { Reader, Store } from "../store/db.ts";
import { requireFullDomainAccess } from "./access.ts";
import * as claims from "./claimtable.ts";
import { claimTag, showClaim, showReservation, showWithdrawn } from "./model/claimshow.ts";
import { type DomainName, readDomainName } from "./model/name.ts";
import { requireOpenName } from "./names.ts";
import * as table from "./table.ts";

/** Dependencies of the claim route handlers. */
export interface ClaimContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: (bytes: number) => Uint8Array;
  /** Waits for the end of a task. */
  readonly ended: Ended;
  readonly reconciler: Reconciler;
}

type Names =
  | "listClaims"
  | "createClaim"
  | "readClaim"
  | "deleteClaim"
  | "listWithdrawnDomains"
  | "readWithdrawnDomain"
  | "deleteWithdrawnDomain"
  | "listReservations"
  | "createReservation"
  | "deleteReservation";

const day = 86_400_000;
const secretBytes = 16;

function readName(text: string): DomainName {
  const name = readDomainName(text);
  if ("reason" in name) throw invalidFields([fieldError("/Name", name.code, `Name ${name.reason}.`)]);
  return name;
}

const checkName = ({ Name }: { readonly Name?: string }) => {
  const name = Name === undefined ? null : readDomainName(Name);
  return name !== null && "reason" in name ? [fieldError("/Name", name.code, `Name ${name.reason}.`)] : [];
};

/** Returns false for a restricted token: it sees only its domain and records. */
const seesAll = ({ restriction }: Caller): boolean => restriction === null;

async function getClaim(db: Reader, caller: Caller, id: number): Promise<claims.ClaimRow> {
  const row = seesAll(caller) ? await claims.findClaim(db, id, caller.projectId) : undefined;
  if (row === undefined) throw new ApiError("claim_not_found", `There is no claim ${id} in this project.`);
  return row;
}

async function getWithdrawn(db: Reader, caller: Caller, id: number): Promise<claims.WithdrawnRow> {
  const row = seesAll(caller) ? await claims.findWithdrawn(db, id, caller.projectId) : undefined;
  if (row === undefined)
    throw new ApiError("withdrawn_domain_not_found", `There is no withdrawn domain ${id} in this project.`);
  return row;
}

type Named = Pick<claims.WithdrawnRow, "id" | "name" | "labels">;

const facetsOf = <T extends Named>(): Facets<T> => ({
  id: (row) => row.id,
  name: (row) => row.name,
  labels: (row) => JSON.parse(row.labels) as Labels,
});

export function claimRoutes({ store, clock, random, ended, reconciler }: ClaimContext): Handlers<Names> {
  return {
    listClaims: {
      async list({ query, caller }, db) {
        const rows = seesAll(caller) ? await claims.listClaims(db, caller.projectId) : [];
        const page = takePage(rows, query, { ...facetsOf<claims.ClaimRow>(), state: (row) => row.state });
        return { ...page, items: page.items.map(showClaim) };
      },
    },
    readClaim: {
      async read({ params, caller }, db) {
        const row = await getClaim(db, caller, params.id);
        return { answer: showClaim(row), tag: claimTag(row) };
      },
    },
    createClaim: {
      check: checkName,
      async change({ body, caller, dryRun }, tx) {
        requireFullDomainAccess(caller, "claim domains");
        const { name, ascii } = readName(body.Name);
        const project = caller.projectId;
        const now = clock.now();
        await table.lockNames(tx);
        await lockProject(tx, project);
        if ((await findProject.first(tx, { id: project })) === undefined)
          throw new ApiError("token_invalid", "The project of the token has been deleted.");
        const pending = await claims.listPending(tx, project);
        const same = pending.find((claim) => claim.ascii === ascii);
        if (same === undefined) {
          await requireOpenName(tx, project, ascii);
          if (pending.length >= claimLimits.pending)
            throw new ApiError(
              "quota_exceeded",
              `The project has ${pending.length} pending claims, which is the maximum. Wait for one to end, or delete one.`,
            );
        }
        const row =
          same ??
          (await claims.insertClaim(tx, {
            project_id: project,
            token_id: caller.tokenId,
            name,
            ascii,
            secret: Buffer.from(random(secretBytes)).toString("hex"),
            state: "Pending",
            detail: "The record has not been looked up yet.",
            domain_id: null,
            created: now,
            checked: null,
            expires: now + claimLimits.days * day,
            labels: JSON.stringify(body.Labels ?? {}),
            version: 1,
          }));
        const task = await requestReconcile(tx, reconciler, row.id);
        const shown = dryRun && same === undefined ? { ...row, id: 0 } : row;
        // A dry run stores no claim, so its text would prove nothing.
        const answer = { ...showClaim(shown), ...(shown.id === 0 && { RecordText: "" }) };
        return {
          answer,
          tag: claimTag(shown),
          changes:
            same === undefined
              ? [{ type: "claim.created", id: shown.id, parent: null, before: null, after: answer }]
              : [],
          async refresh(ms) {
            await endedWithin(ended, [task], ms);
            const after = await claims.findAnyClaim(store.read, row.id);
            return after === undefined || after.version === row.version ? undefined : showClaim(after);
          },
        };
      },
    },
    deleteClaim: {
      async change({ params, caller, expect }, tx) {
        await table.lockNames(tx);
        const row = await getClaim(tx, caller, params.id);
        expect(claimTag(row));
        await claims.deleteClaim(tx, row.id);
        return {
          answer: undefined,
          changes: [{ type: "claim.deleted", id: row.id, parent: null, before: showClaim(row), after: null }],
        };
      },
    },
    listWithdrawnDomains: {
      async list({ query, caller }, db) {
        const rows = seesAll(caller) ? await claims.listWithdrawn(db, caller.projectId) : [];
        const page = takePage(rows, query, facetsOf());
        return { ...page, items: page.items.map((row) => showWithdrawn(row, "")) };
      },
    },
    readWithdrawnDomain: {
      async read({ params, caller }, db) {
        const row = await getWithdrawn(db, caller, params.id);
        return { answer: showWithdrawn(row, row.zone_file), tag: `withdrawn-${row.id}-1` };
      },
    },
    deleteWithdrawnDomain: {
      async change({ params, caller, expect }, tx) {
        await table.lockNames(tx);
        const row = await getWithdrawn(tx, caller, params.id);
        expect(`withdrawn-${row.id}-1`);
        await claims.deleteWithdrawn(tx, row.id);
        return { answer: undefined, changes: [] };
      },
    },
    listReservations: {
      async list({ query }, db) {
        const page = takePage(await claims.listReserved(db), query, facetsOf());
        return { ...page, items: page.items.map(showReservation) };
      },
    },
    createReservation: {
      check: checkName,
      async change({ body, dryRun }, tx) {
        const { name, ascii } = readName(body.Name);
        const project = body.ProjectID ?? null;
        await table.lockNames(tx);
        const [same] = await claims.listReservedAt(tx, [ascii]);
        if (same !== undefined)
          throw errorAt("reservation_exists", "/Name", `Reservation ${same.id} has the name ${ascii}.`);
        if (project !== null && (await findProject.first(tx, { id: project })) === undefined)
          throw invalidFields([fieldError("/ProjectID", "unknown_reference", `There is no project ${project}.`)]);
        const inserted = await claims.insertReserved(tx, {
          name,
          ascii,
          project_id: project,
          created: clock.now(),
          labels: JSON.stringify(body.Labels ?? {}),
        });
        const row = dryRun ? { ...inserted, id: 0 } : inserted;
        return { answer: showReservation(row), tag: `reservation-${row.id}-1`, changes: [] };
      },
    },
    deleteReservation: {
      async change({ params, expect }, tx) {
        await table.lockNames(tx);
        const row = await claims.findReserved(tx, params.id);
        if (row === undefined) throw new ApiError("reservation_not_found", `There is no reservation ${params.id}.`);
        expect(`reservation-${row.id}-1`);
        await claims.deleteReserved(tx, row.id);
        return { answer: undefined, changes: [] };
      },
    },
  };
}
