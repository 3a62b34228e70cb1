/** Account, projects, tokens and the audit log. */
import { type Static, Type } from "typebox";
import {
  boolean,
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  maxId,
  name,
  nameFilter,
  nullable,
  optional,
  optionalId,
  text,
  word,
} from "./common.ts";
import { recordTypes } from "./dns.ts";
import { firewallLimits } from "./firewall.ts";
import { operations, scopes } from "./operation.ts";

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
  Tunnels: { default: 50, maximum: maxId },
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

const numbers = <K extends Quota>(names: readonly K[]) =>
  Object.fromEntries(names.map((key) => [key, integer(0, quotas[key].maximum)])) as Record<
    K,
    ReturnType<typeof integer>
  >;

const Quotas = Type.Object(numbers(quotaNames));
const Usage = Type.Object(numbers(usageNames));
const Balances = Type.Object({ Real: integer(0, 0), Bonus: integer(0, 0), Test: integer(0, 0) });

/** A project with its quotas and their usage. */
export const Project = Type.Object(
  {
    ID: id(),
    Name: name(),
    IsBlocked: boolean({
      description: "`true`: changes are rejected and servers are powered off. Objects can be read and deleted.",
    }),
    Balances,
    Quotas,
    Usage,
    DateCreate: date(),
    Labels,
  },
  { title: "Project" },
);
/** TypeScript type of this schema. */
export type Project = Static<typeof Project>;

const RateLimit = Type.Object({ Requests: integer(1, 1_000_000), Seconds: integer(1, 86_400) });
/** At most `Requests` requests in `Seconds` seconds. */
export type RateLimit = Static<typeof RateLimit>;

/** A token, without its secret after the creation. */
export const Token = Type.Object(
  {
    ID: id(),
    Name: name(),
    Token: text({ description: "64 hexadecimal characters in the response to the creation, else empty." }),
    Scopes: list(word(scopes)),
    ProjectID: id(),
    DomainID: nullable(id()),
    RecordPattern: nullable(text()),
    RecordTypes: nullable(list(word(recordTypes))),
    ExpiresAt: nullable(date()),
    RateLimit: nullable(RateLimit),
    DateCreate: date(),
    LastUsedAt: nullable(date()),
    AllowedFrom: nullable(list(text())),
    Labels,
  },
  { title: "Token" },
);
/** TypeScript type of this schema. */
export type Token = Static<typeof Token>;

/** The owner of the installation, its projects, and the token of the request. */
export const Account = Type.Object(
  {
    ID: id(),
    FirstName: text(),
    LastName: text(),
    Email: text(),
    Balance: integer(0, 0),
    BalanceTillDateUtc: date(),
    ProjectsBalance: list(Type.Object({ ProjectId: id(), Balance: Balances })),
    Projects: list(Type.Object({ ID: id(), Name: name(), IsBlocked: boolean() })),
    Token: Type.Object({ ID: id(), Name: name(), Scopes: list(word(scopes)), ProjectID: id() }),
  },
  { title: "Account" },
);
/** TypeScript type of this schema. */
export type Account = Static<typeof Account>;

/** One change, or one refused request, with its token and address. */
export const AuditEntry = Type.Object(
  {
    ID: id({ maximum: Number.MAX_SAFE_INTEGER }),
    Date: date(),
    TokenID: nullable(id({ description: "`null`: the request had no token, or an unknown one." })),
    TokenName: text(),
    Address: text({
      description: "Address of the client. Empty if an entry counts requests with unknown tokens from many addresses.",
    }),
    Operation: text({ description: "Operation id." }),
    Resource: nullable(text()),
    ResourceID: nullable(id()),
    Status: integer(100, 599),
    RequestID: text(),
    Before: Type.Unknown({ description: "The object before the change, without secrets. `null` if there was none." }),
    After: Type.Unknown({ description: "The object after the change, without secrets. `null` if there is none." }),
    Count: integer(1, Number.MAX_SAFE_INTEGER, {
      description: "Number of identical rejected requests in this entry. The other fields describe the first one.",
    }),
    LastDate: date({ description: "Time of the last of these requests." }),
  },
  { title: "AuditEntry" },
);
/** TypeScript type of this schema. */
export type AuditEntry = Static<typeof AuditEntry>;

const projectParam = { id: "project_not_found" } as const;
const tokenParam = { id: "token_not_found" } as const;

/** Operations on the account, projects, tokens and the audit log. */
export const accountOperations = operations({
  readAccount: {
    method: "GET",
    path: "/account",
    access: "any",
    summary: "Get the account, its projects and the current token",
    answer: Account,
  },
  readBalance: {
    method: "GET",
    path: "/customer/balance",
    access: "any",
    summary: "Get the balance",
    description: "Always the number 0, because nothing is billed.",
    answer: integer(0, 0),
  },
  readOwnProject: {
    method: "GET",
    path: "/project",
    access: "any",
    summary: "Get the project of the token",
    answer: Project,
    etag: true,
  },
  createProject: {
    method: "POST",
    path: "/project",
    access: "account:admin",
    summary: "Create a project",
    body: Type.Object({ Name: name(), Quotas: optional(Type.Partial(Quotas)), Labels: optional(Labels) }),
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
    body: Type.Object({
      Name: optional(name()),
      IsBlocked: optional(boolean()),
      Quotas: optional(Type.Partial(Quotas)),
      Labels: optional(Labels),
    }),
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
    params: projectParam,
    answer: null,
    errors: ["project_in_use"],
  },
  listTokens: {
    method: "GET",
    path: "/token",
    access: "account:admin",
    summary: "List the tokens of a project",
    query: listQuery({
      name: nameFilter,
      label: labelFilter,
      project: optionalId({ description: "List the tokens of this project. Default: the project of the token." }),
    }),
    answer: list(Token),
    list: true,
    errors: ["project_not_found"],
  },
  createToken: {
    method: "POST",
    path: "/token",
    access: "account:admin",
    summary: "Create a token",
    description: "The response contains the token. It cannot be read again.",
    body: Type.Object({
      Name: name(),
      Scopes: list(word(scopes), { minItems: 1 }),
      ProjectID: optionalId(),
      DomainID: optionalId(),
      RecordPattern: optional(text({ minLength: 1, maxLength: 253 })),
      RecordTypes: optional(list(word(recordTypes), { minItems: 1 })),
      ExpiresAt: optional(date()),
      RateLimit: optional(RateLimit),
      AllowedFrom: optional(
        list(text(), {
          minItems: 1,
          maxItems: 64,
          description: "Addresses and CIDR blocks from which the token may be used. Default: any.",
        }),
      ),
      Labels: optional(Labels),
    }),
    answer: Token,
    etag: true,
    resultOperation: "readToken",
    allowedWhenBlocked: true,
    errors: ["quota_exceeded"],
  },
  readToken: {
    method: "GET",
    path: "/token/{id}",
    access: "account:admin",
    own: "token",
    summary: "Get a token",
    params: tokenParam,
    answer: Token,
    etag: true,
  },
  deleteToken: {
    method: "DELETE",
    path: "/token/{id}",
    access: "account:admin",
    own: "token",
    summary: "Delete a token",
    description: "Requests with the token are rejected at once.",
    params: tokenParam,
    answer: null,
    errors: ["last_admin_token"],
  },
  listAudit: {
    method: "GET",
    path: "/audit",
    access: "account:admin",
    summary: "List the audit log, newest first",
    description:
      "Every requested change, accepted or rejected, and every request with an expired or unknown token. Requests with unknown tokens are in the audit log of every project. Repeated rejections are counted in one entry.",
    query: listQuery({
      token: optionalId(),
      resource: optional(text({ description: "Kind of resource, or one object: `domain`, `domain:3`." })),
      operation: optional(text({ description: "Operation id; `*` at the end matches any ending." })),
      from: optional(date()),
      to: optional(date()),
    }),
    answer: list(AuditEntry),
    list: true,
  },
});
