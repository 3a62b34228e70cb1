/** Account, projects and the audit log. `token.ts` contains the tokens. */
import type { Static, TInteger, TOptional } from "typebox";
import {
  anything,
  boolean,
  type Described,
  date,
  id,
  integer,
  Labels,
  list,
  listQuery,
  maxId,
  name,
  nullable,
  object,
  optional,
  optionalId,
  shownAs,
  text,
} from "./common.ts";
import { firewallLimits } from "./firewall.ts";
import { operations } from "./operation.ts";
import { scope } from "./token.ts";
import { tunnelLimits } from "./vpn.ts";

/** Quotas of a project: name, default, and the highest value that can be set. RAM in MB, HDD in GB. */
export const quotas = {
  Servers: { default: 100, maximum: maxId },
  CPU: { default: 200, maximum: maxId },
  RAM: { default: 262_144, maximum: maxId },
  HDD: { default: 4096, maximum: maxId },
  PublicNetworks: { default: 50, maximum: maxId },
  PrivateNetworks: { default: 100, maximum: maxId },
  Domains: { default: 1000, maximum: maxId },
  RecordsPerDomain: { default: 10_000, maximum: 1_000_000 },
  FirewallRules: { default: 500, maximum: firewallLimits.rules },
  Tunnels: { default: 50, maximum: tunnelLimits.tunnels },
  SshKeys: { default: 100, maximum: maxId },
  Images: { default: 50, maximum: maxId },
  Tokens: { default: 100, maximum: maxId },
  Webhooks: { default: 10, maximum: maxId },
} as const;

/** A key of `Quotas` and, for `usageNames`, of `Usage`. */
export type Quota = keyof typeof quotas;
/** The keys of `Quotas`, in the order of responses. */
export const quotaNames = Object.keys(quotas) as Quota[];

/** Quotas that count over the whole project; the others apply to each domain or network. */
export const usageNames = [
  "Servers",
  "CPU",
  "RAM",
  "HDD",
  "PublicNetworks",
  "PrivateNetworks",
  "Domains",
  "SshKeys",
  "Images",
  "Tokens",
  "Webhooks",
] as const satisfies readonly Quota[];

/** What each quota counts. */
const counted: Readonly<Record<Quota, string>> = {
  Servers: "Number of servers.",
  CPU: "Virtual CPUs of all servers.",
  RAM: "Memory of all servers, in MB.",
  HDD: "Disk space of all servers, in GB.",
  PublicNetworks: "Number of public networks.",
  PrivateNetworks: "Number of private networks.",
  Domains: "Number of domains.",
  RecordsPerDomain: "Records of each domain.",
  FirewallRules: "Firewall rules of each public network.",
  Tunnels: "Tunnels of each public network.",
  SshKeys: "Number of SSH keys.",
  Images: "Number of images, without backups.",
  Tokens: "Number of tokens.",
  Webhooks: "Number of webhooks.",
};

const numbers = <K extends Quota>(names: readonly K[]) =>
  Object.fromEntries(
    names.map((key) => [key, integer(0, quotas[key].maximum, { description: counted[key] })]),
  ) as unknown as Record<K, TInteger & Described>;

const Quotas = object("Quotas", "Limits of a project.", numbers(quotaNames));
const QuotasInput = object(
  "QuotasRequest",
  "Limits to set. Absent quotas stay unchanged, in a new project at their defaults.",
  Object.fromEntries(
    Object.entries(numbers(quotaNames)).map(([key, schema]) => [key, optional(schema)]),
  ) as unknown as Record<Quota, TOptional<TInteger & Described>>,
);
const Usage = object(
  "Usage",
  "Present use of the quotas. Failed servers and backups are not counted.",
  numbers(usageNames),
);
const Balances = object("Balances", "Always zero, because nothing is billed.", {
  Real: integer(0, 0, { description: "Always 0." }),
  Bonus: integer(0, 0, { description: "Always 0." }),
  Test: integer(0, 0, { description: "Always 0." }),
});

/** A project with its quotas and their usage. */
export const Project = object("Project", "A project with its quotas and their usage.", {
  ID: id({ description: "Id of the project." }),
  Name: name({ description: "Name of the project, unique." }),
  IsBlocked: boolean({
    description: "`true`: changes are rejected and servers are powered off. Objects can be read and deleted.",
  }),
  Balances,
  Quotas,
  Usage,
  DateCreate: date({ description: "When the project was created." }),
  Labels,
});
/** TypeScript type of this schema. */
export type Project = Static<typeof Project>;

/** The account of the installation. */
export const Account = object("Account", "The account of the installation.", {
  ID: id({ description: "Always 1." }),
  FirstName: text({ description: "Always empty; existing clients read it." }),
  LastName: text({ description: "Always empty; existing clients read it." }),
  Email: text({ description: "Always empty; existing clients read it." }),
  Balance: integer(0, 0, { description: "Always 0, because nothing is billed." }),
  BalanceTillDateUtc: date({ description: "Always `9999-12-31T23:59:59.999Z`." }),
  ProjectsBalance: list(
    object("ProjectBalance", "The balance of a project.", {
      ProjectId: id({ description: "Id of the project." }),
      Balance: Balances,
    }),
    { description: "One item for each project of `Projects`." },
  ),
  Projects: list(
    object("ProjectSummary", "A project of the account.", {
      ID: id({ description: "Id of the project." }),
      Name: name({ description: "Name of the project." }),
      IsBlocked: boolean({ description: "`true`: the project is blocked." }),
    }),
    { description: "All projects for a token with `account:admin`, else the project of the token." },
  ),
  Token: object("TokenSummary", "The token of the request.", {
    ID: id({ description: "Id of the token." }),
    Name: name({ description: "Name of the token." }),
    Scopes: list(scope, { description: "What the token may do." }),
    ProjectID: id({ description: "Project whose objects the token sees." }),
    DomainID: nullable(id({ description: "The only domain that the token sees and changes. `null`: no restriction." })),
  }),
});
/** TypeScript type of this schema. */
export type Account = Static<typeof Account>;

/** One entry of the audit log. */
export const AuditEntry = object("AuditEntry", "One entry of the audit log.", {
  ID: id({ maximum: Number.MAX_SAFE_INTEGER, description: "Id of the entry." }),
  Date: date({ description: "When the request was received." }),
  TokenID: nullable(id({ description: "`null`: the request had no token, or an unknown one." })),
  TokenName: text({ description: "Name of the token. Empty: no token, or an unknown one." }),
  Address: text({
    description: "Address of the client. Empty if an entry counts requests with unknown tokens from many addresses.",
  }),
  Operation: text({ description: "Operation id." }),
  Resource: nullable(text({ description: "Kind of the object, such as `domain`. `null`: none." })),
  ResourceID: nullable(id({ description: "Id of the object. `null`: none." })),
  Status: integer(100, 599, { description: "HTTP status of the response." }),
  RequestID: text({ description: "`X-Request-Id` of the request." }),
  Before: anything({ description: "The object before the change, without secrets. `null` if there was none." }),
  After: anything({ description: "The object after the change, without secrets. `null` if there is none." }),
  Count: integer(1, Number.MAX_SAFE_INTEGER, {
    description: "Number of identical rejected requests in this entry. The other fields describe the first one.",
  }),
  LastDate: date({ description: "Time of the last of these requests." }),
});
/** TypeScript type of this schema. */
export type AuditEntry = Static<typeof AuditEntry>;

const projectParam = { id: "project_not_found" } as const;

/** Operations on the account, projects and the audit log. */
export const accountOperations = operations({
  readAccount: {
    method: "GET",
    path: "/account",
    access: "any",
    summary: "Get the account, its projects and the current token",
    description: "The first request of most clients: it shows whether the token is valid and what it may do.",
    answer: Account,
  },
  readBalance: {
    method: "GET",
    path: "/customer/balance",
    access: "any",
    summary: "Get the balance",
    description: "Always the number 0, because nothing is billed.",
    answer: integer(0, 0, { description: "Always 0." }),
  },
  readOwnProject: {
    method: "GET",
    path: "/project",
    access: "any",
    summary: "Get the project of the token",
    description: "Returns the quotas of the project and their usage.",
    answer: Project,
    etag: true,
  },
  createProject: {
    method: "POST",
    path: "/project",
    access: "account:admin",
    summary: "Create a project",
    description: "Projects isolate their objects from each other. Create a token with `ProjectID` to use the project.",
    body: object("CreateProjectRequest", "A new project.", {
      Name: name({ description: "Name of the project, unique." }),
      Quotas: optional(QuotasInput),
      Labels: optional(Labels),
    }),
    answer: Project,
    etag: true,
    resultOperation: "readProject",
    allowedWhenBlocked: true,
    errors: ["title_taken"],
  },
  readProject: {
    method: "GET",
    path: "/project/{id}",
    access: "account:admin",
    own: "project",
    summary: "Get a project",
    description: "Returns the quotas of the project and their usage.",
    params: projectParam,
    answer: Project,
    etag: true,
  },
  updateProject: {
    method: "PUT",
    path: "/project/{id}",
    access: "account:admin",
    summary: "Update a project",
    description: "A quota may be lower than its current use; then new objects are rejected.",
    params: projectParam,
    body: object(
      "UpdateProjectRequest",
      "What changes. Absent fields stay unchanged.",
      {
        Name: optional(name({ description: "Name of the project, unique." })),
        IsBlocked: optional(
          boolean({ description: "`true`: reject changes and power servers off. `false`: power them on again." }),
        ),
        Quotas: optional(QuotasInput),
        Labels: optional(Labels),
      },
      shownAs(Project),
    ),
    answer: Project,
    etag: true,
    resultOperation: "readProject",
    repeatable: true,
    allowedWhenBlocked: true,
    errors: ["title_taken"],
  },
  deleteProject: {
    method: "DELETE",
    path: "/project/{id}",
    access: "account:admin",
    summary: "Delete a project that owns no objects but tokens",
    description: "Deletes its tokens too.",
    params: projectParam,
    answer: null,
    errors: ["project_in_use"],
  },
  listAudit: {
    method: "GET",
    path: "/audit",
    access: "account:admin",
    summary: "List the audit log, newest first",
    description:
      "Every requested change, accepted or rejected, and every request with an expired or unknown token. Requests with unknown tokens are in the audit log of every project. Repeated rejections are counted in one entry. `X-Total-Count` counts at most 10000 entries.",
    query: listQuery({
      token: optionalId({ description: "Id of the token that sent the requests." }),
      resource: optional(text({ description: "Kind of resource, or one object: `domain`, `domain:3`." })),
      operation: optional(text({ description: "Operation id; `*` at the end matches any ending." })),
      from: optional(date({ description: "Only requests at or after this time." })),
      to: optional(date({ description: "Only requests before this time." })),
    }),
    answer: list(AuditEntry),
    list: true,
  },
});
