/** Route handlers for the account, projects, tokens and the audit log. */
import { type Account, type Project, usageNames } from "@brume/api/account.ts";
import { formatDate, type Labels } from "@brume/api/common.ts";
import { mostCounted } from "@brume/api/event.ts";
import { grants, type Scope, scopes } from "@brume/api/operation.ts";
import type { RateLimit, Token } from "@brume/api/token.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../base/error.ts";
import { createTokenValue, hashToken } from "../base/secret.ts";
import type { Caller, ChangeResult, Handlers, ResourceChange } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import { decodeCursor, encodeCursor } from "../http/read/page.ts";
import { lock, type Reader, type Tx } from "../store/db.ts";
import { showAudit } from "./audit.ts";
import { readAuditOperation, readAuditSubject } from "./auditquery.ts";
import type { Authenticator } from "./authenticator.ts";
import { checkToken, mergeQuotas, type Quotas, requireQuota } from "./model/rules.ts";
import * as table from "./table.ts";

/** More rows than any list has, as a number of 32 bits. */
const everything = 2 ** 31 - 2;

const noBalance = { Real: 0, Bonus: 0, Test: 0 };

async function showProject(db: Reader, row: table.ProjectRow): Promise<Project> {
  const usage = await table.countUsage(db, row.id);
  return {
    ID: row.id,
    Name: row.name,
    IsBlocked: row.is_blocked === 1,
    Balances: noBalance,
    Quotas: mergeQuotas(JSON.parse(row.quotas) as Partial<Quotas>),
    Usage: Object.fromEntries(usageNames.map((key) => [key, usage[key] ?? 0])) as Project["Usage"],
    DateCreate: formatDate(row.created),
    Labels: JSON.parse(row.labels) as Labels,
  };
}

function showToken(row: table.TokenRow, value = ""): Token {
  return {
    ID: row.id,
    Name: row.name,
    Token: value,
    Scopes: JSON.parse(row.scopes) as Token["Scopes"],
    ProjectID: row.project_id,
    DomainID: row.domain_id,
    RecordPattern: row.record_pattern,
    RecordTypes: row.record_types === null ? null : (JSON.parse(row.record_types) as Token["RecordTypes"]),
    ExpiresAt: row.expires_at === null ? null : formatDate(row.expires_at),
    RateLimit: row.rate_limit === null ? null : (JSON.parse(row.rate_limit) as RateLimit),
    DateCreate: formatDate(row.created),
    LastUsedAt: row.last_used === null ? null : formatDate(row.last_used),
    AllowedFrom: row.allowed_from === null ? null : (JSON.parse(row.allowed_from) as string[]),
    Labels: JSON.parse(row.labels) as Labels,
  };
}

const projectTag = (row: table.ProjectRow): string => `project-${row.id}-${row.version}`;
const tokenTag = (row: table.TokenRow): string => `token-${row.id}-${row.version}`;
/** Returns the event and audit entry of a project or token. */
const changeOf = (
  type: ResourceChange["type"],
  id: number,
  project: number,
  before: unknown,
  after: unknown,
): ResourceChange => ({
  type,
  id,
  parent: null,
  project,
  before,
  after,
});
const isAdmin = (caller: Caller): boolean => grants(caller.scopes, "account:admin");

async function getProject(db: Reader, id: number): Promise<table.ProjectRow> {
  const row = await table.findProject.first(db, { id });
  if (row === undefined) throw new ApiError("project_not_found", `There is no project ${id}.`);
  return row;
}

async function getToken(db: Reader, id: number): Promise<table.TokenRow> {
  const row = await table.findToken.first(db, { id });
  if (row === undefined) throw new ApiError("token_not_found", `There is no token ${id}.`);
  return row;
}

/** Throws `title_taken` if a project other than `id` has the name. Holds the lock of names until commit. */
async function requireName(tx: Tx, name: string, id: number | null): Promise<void> {
  await lock(tx, "project-names");
  const other = await table.findProjectByName(tx, name);
  if (other !== undefined && other.id !== id)
    throw errorAt("title_taken", "/Name", `Project ${other.id} already has the name "${name}".`);
}

/** Returns the scopes without duplicates, in the order of the contract. */
const normalizeScopes = (wanted: readonly string[]): Scope[] => scopes.filter((scope) => wanted.includes(scope));

type Names =
  | "readAccount"
  | "readBalance"
  | "readOwnProject"
  | "createProject"
  | "readProject"
  | "updateProject"
  | "deleteProject"
  | "listTokens"
  | "createToken"
  | "readToken"
  | "deleteToken"
  | "listAudit";

/** Callback of other features when a project is blocked or unblocked. Runs in the transaction of the change. */
export type NoteBlocked = (tx: Tx, project: number, isBlocked: boolean, by: Author) => Promise<void>;

/** The author of the change. */
interface Author {
  readonly token: number;
  readonly request: string;
}

export function accountRoutes(clock: Clock, authenticator: Authenticator, noteBlocked: NoteBlocked): Handlers<Names> {
  /** Clears the cache of the authenticator after the commit. */
  const forgetting = <A>(outcome: ChangeResult<A>): ChangeResult<A> => ({
    ...outcome,
    refresh: async () => {
      authenticator.forget();
      return undefined;
    },
  });

  return {
    readAccount: {
      async read({ caller }, db) {
        const project = await getProject(db, caller.projectId);
        const projects = isAdmin(caller) ? await table.listProjects(db) : [project];
        const answer: Account = {
          ID: 1,
          FirstName: "",
          LastName: "",
          Email: "",
          Balance: 0,
          BalanceTillDateUtc: "9999-12-31T23:59:59.999Z",
          ProjectsBalance: projects.map((row) => ({ ProjectId: row.id, Balance: noBalance })),
          Projects: projects.map((row) => ({ ID: row.id, Name: row.name, IsBlocked: row.is_blocked === 1 })),
          Token: {
            ID: caller.tokenId,
            Name: caller.tokenName,
            Scopes: [...caller.scopes],
            ProjectID: caller.projectId,
            DomainID: caller.restriction?.domainId ?? null,
          },
        };
        return { answer };
      },
    },
    readBalance: { read: async () => ({ answer: 0 }) },
    readOwnProject: {
      async read({ caller }, db) {
        const row = await getProject(db, caller.projectId);
        return { answer: await showProject(db, row), tag: projectTag(row) };
      },
    },
    readProject: {
      async read({ params }, db) {
        const row = await getProject(db, params.id);
        return { answer: await showProject(db, row), tag: projectTag(row) };
      },
    },
    createProject: {
      async change({ body, dryRun }, tx) {
        await requireName(tx, body.Name, null);
        const row = await table.insertProject(tx, {
          name: body.Name,
          quotas: JSON.stringify(body.Quotas ?? {}),
          labels: JSON.stringify(body.Labels ?? {}),
          created: clock.now(),
          is_blocked: 0,
          version: 1,
        });
        const answer = await showProject(tx, row);
        if (dryRun) answer.ID = 0;
        return {
          answer,
          tag: projectTag(row),
          changes: [changeOf("project.created", row.id, row.id, null, answer)],
        };
      },
    },
    updateProject: {
      async change({ params, body, caller, requestId, expect }, tx) {
        await table.lockProject(tx, params.id);
        const row = await getProject(tx, params.id);
        expect(projectTag(row));
        if (body.Name !== undefined && body.Name !== row.name) await requireName(tx, body.Name, row.id);
        const stored = JSON.parse(row.quotas) as Partial<Quotas>;
        const input = {
          name: body.Name ?? row.name,
          is_blocked: body.IsBlocked === undefined ? row.is_blocked : Number(body.IsBlocked),
          quotas: JSON.stringify({ ...stored, ...body.Quotas }),
          labels: body.Labels === undefined ? row.labels : JSON.stringify(body.Labels),
        };
        const before = await showProject(tx, row);
        const after = await showProject(tx, { ...row, ...input });
        if (JSON.stringify(after) === JSON.stringify(before))
          return { answer: before, tag: projectTag(row), changes: [] };
        const changed = await table.updateProject(tx, row.id, { ...input, version: row.version + 1 });
        if (input.is_blocked !== row.is_blocked)
          await noteBlocked(tx, row.id, input.is_blocked === 1, { token: caller.tokenId, request: requestId });
        return forgetting({
          answer: after,
          tag: projectTag(changed),
          changes: [changeOf("project.changed", row.id, row.id, before, after)],
        });
      },
    },
    deleteProject: {
      async change({ params, caller, expect }, tx) {
        await table.lockProject(tx, params.id);
        const row = await getProject(tx, params.id);
        expect(projectTag(row));
        if (row.id === caller.projectId)
          throw new ApiError(
            "project_in_use",
            `Project ${row.id} is the project of your token. Delete it with a token of another project.`,
          );
        const before = await showProject(tx, row);
        const owned = Object.entries(await table.countOwned(tx, row.id)).filter(([, count]) => count > 0);
        if (owned.length > 0)
          throw new ApiError(
            "project_in_use",
            `Project ${row.id} owns ${owned.map(([kind, count]) => `${count} ${kind}`).join(", ")}.`,
          );
        // The token of this request may have been deleted with its project since it was authenticated.
        await table.lockAdmins(tx);
        if (!(await table.hasOtherAdmin(tx, { project: row.id }, clock.now())))
          throw new ApiError("project_in_use", `Project ${row.id} has the only tokens with account:admin.`);
        await table.deleteProject(tx, row.id);
        return forgetting({
          answer: undefined,
          changes: [changeOf("project.deleted", row.id, caller.projectId, before, null)],
        });
      },
    },
    listTokens: {
      async list({ query, caller }, db) {
        const project = query.project ?? caller.projectId;
        await getProject(db, project);
        const page = takePage(await table.listTokens(db, project), query, {
          id: (row) => row.id,
          name: (row) => row.name,
          labels: (row) => JSON.parse(row.labels) as Labels,
        });
        return { ...page, items: page.items.map((row) => showToken(row)) };
      },
    },
    readToken: {
      async read({ params }, db) {
        const row = await getToken(db, params.id);
        return { answer: showToken(row), tag: tokenTag(row) };
      },
    },
    createToken: {
      check: (body) => checkToken(body, clock.now()),
      async change({ body, caller, dryRun }, tx) {
        const projectId = body.ProjectID ?? caller.projectId;
        await table.lockProject(tx, projectId);
        const project = await table.findProject.first(tx, { id: projectId });
        if (project === undefined)
          throw invalidFields([fieldError("/ProjectID", "unknown_reference", `There is no project ${projectId}.`)]);
        if (body.DomainID !== undefined && !(await table.ownsDomain(tx, projectId, body.DomainID)))
          throw invalidFields([
            fieldError(
              "/DomainID",
              "unknown_reference",
              `There is no domain ${body.DomainID} in project ${projectId}.`,
            ),
          ]);
        requireQuota(project.quotas, "Tokens", await table.countTokens(tx, projectId), 1);
        const value = dryRun ? "" : createTokenValue();
        const granted = normalizeScopes(body.Scopes);
        const list = (items: readonly string[] | undefined) => (items === undefined ? null : JSON.stringify(items));
        const row = await table.insertToken(tx, {
          project_id: projectId,
          name: body.Name,
          hash: hashToken(value),
          scopes: JSON.stringify(granted),
          is_admin: granted.includes("account:admin") ? 1 : 0,
          domain_id: body.DomainID ?? null,
          record_pattern: body.RecordPattern ?? null,
          record_types: list(body.RecordTypes),
          expires_at: body.ExpiresAt === undefined ? null : Date.parse(body.ExpiresAt),
          rate_limit: body.RateLimit === undefined ? null : JSON.stringify(body.RateLimit),
          allowed_from: list(body.AllowedFrom),
          labels: JSON.stringify(body.Labels ?? {}),
          created: clock.now(),
          last_used: null,
          version: 1,
        });
        const answer = showToken(row, value);
        if (dryRun) answer.ID = 0;
        return {
          answer,
          tag: tokenTag(row),
          changes: [changeOf("token.created", row.id, projectId, null, { ...answer, Token: "" })],
        };
      },
    },
    deleteToken: {
      async change({ params, expect }, tx) {
        await table.lockAdmins(tx);
        const row = await getToken(tx, params.id);
        expect(tokenTag(row));
        if (row.is_admin === 1 && !(await table.hasOtherAdmin(tx, { token: row.id }, clock.now())))
          throw new ApiError(
            "last_admin_token",
            `Token ${row.id} is the only one left with account:admin. Create another administrator token first.`,
          );
        await table.deleteToken(tx, row.id);
        return forgetting({
          answer: undefined,
          changes: [changeOf("token.deleted", row.id, row.project_id, showToken(row), null)],
        });
      },
    },
    listAudit: {
      async list({ query, caller }, db) {
        const filter: table.AuditFilter = {
          project: caller.projectId,
          token: query.token,
          ...readAuditSubject(query.resource),
          operations: readAuditOperation(query.operation),
          from: query.from === undefined ? undefined : Date.parse(query.from),
          to: query.to === undefined ? undefined : Date.parse(query.to),
        };
        const limit = query.limit ?? (query.cursor === undefined ? everything : 100);
        const before = query.cursor === undefined ? null : decodeCursor(query.cursor).id;
        const total = await table.countAudit(db, filter, mostCounted);
        const rows = await table.listAudit(db, filter, before, limit + 1);
        const items = rows.slice(0, limit);
        const last = items.at(-1);
        return {
          items: items.map(showAudit),
          total,
          next: rows.length > items.length && last !== undefined ? encodeCursor({ id: last.id }) : null,
        };
      },
    },
  };
}
