/** Projects 1 and 2, token 2 with its audit entries and events, and the service operations. */
import type { Contract } from "../contract.ts";
import type { Answer } from "../operation.ts";
import { recordExample } from "./dns.ts";
import { date, type Examples } from "./example.ts";

const session = {
  ID: 1,
  Name: "Firefox on Linux",
  TokenID: 2,
  TokenName: "acme",
  ProjectID: 1,
  Address: "10.63.0.2",
  DateCreate: date,
  ExpiresAt: "2026-11-27T09:15:00.120Z",
  IsCurrent: true,
};

const project = (id: number, name: string, servers: number, used: number) => ({
  ID: id,
  Name: name,
  IsBlocked: false,
  Balances: { Real: 0, Bonus: 0, Test: 0 },
  Quotas: {
    Servers: servers,
    CPU: 200,
    RAM: 262_144,
    HDD: 4096,
    PublicNetworks: 50,
    PrivateNetworks: 100,
    Domains: 1000,
    RecordsPerDomain: 10_000,
    FirewallRules: 500,
    Tunnels: 50,
    SshKeys: 100,
    Images: 50,
    Tokens: 100,
    Webhooks: 10,
  },
  Usage: {
    Servers: used,
    CPU: used,
    RAM: 512 * used,
    HDD: 10 * used,
    PublicNetworks: used,
    PrivateNetworks: 0,
    Domains: used,
    SshKeys: used,
    Images: 0,
    Tokens: used,
    Webhooks: 0,
  },
  DateCreate: date,
  Labels: {},
});

const token = (value: string): Answer<Contract["createToken"]> => ({
  ID: 2,
  Name: "acme",
  Token: value,
  Scopes: ["dns:read", "dns:write"],
  ProjectID: 1,
  DomainID: 3,
  RecordPattern: "_acme-challenge*",
  RecordTypes: ["TXT"],
  ExpiresAt: "2027-11-20T00:00:00.000Z",
  RateLimit: null,
  DateCreate: date,
  LastUsedAt: null,
  AllowedFrom: null,
  Labels: {},
});

/** Examples of the operations on the account, projects, tokens, audit, events and service operations. */
export const accountExamples: Examples = {
  readAccount: {
    answer: {
      ID: 1,
      FirstName: "",
      LastName: "",
      Email: "",
      Balance: 0,
      BalanceTillDateUtc: "9999-12-31T23:59:59.999Z",
      ProjectsBalance: [{ ProjectId: 1, Balance: { Real: 0, Bonus: 0, Test: 0 } }],
      Projects: [{ ID: 1, Name: "default", IsBlocked: false }],
      Token: {
        ID: 1,
        Name: "first",
        Scopes: [
          "server:read",
          "server:write",
          "dns:read",
          "dns:write",
          "network:read",
          "network:write",
          "account:admin",
          "metrics:read",
        ],
        ProjectID: 1,
        DomainID: null,
      },
    },
  },
  readBalance: { answer: 0 },
  readOwnProject: { answer: project(1, "default", 100, 1) },
  createProject: { request: { Name: "team-b", Quotas: { Servers: 20 } }, answer: project(2, "team-b", 20, 0) },
  readProject: { path: [2], answer: project(2, "team-b", 20, 0) },
  updateProject: { path: [2], request: { Quotas: { Servers: 40 } }, answer: project(2, "team-b", 40, 0) },
  deleteProject: { path: [2] },
  listTokens: { answer: [token("")] },
  createToken: {
    request: {
      Name: "acme",
      Scopes: ["dns:read", "dns:write"],
      DomainID: 3,
      RecordPattern: "_acme-challenge*",
      RecordTypes: ["TXT"],
      ExpiresAt: "2027-11-20T00:00:00Z",
    },
    answer: token("5f1c0e7a9b3d4c2e8f6a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e"),
  },
  readToken: { path: [2], answer: token("") },
  deleteToken: { path: [2] },
  listSessions: { answer: [session] },
  createSession: { request: { Name: "Firefox on Linux" }, answer: session },
  deleteOwnSession: {},
  deleteSession: { path: [1] },
  listAudit: {
    answer: [
      {
        ID: 57,
        Date: date,
        TokenID: 2,
        TokenName: "acme",
        Address: "10.63.0.2",
        Operation: "createRecordTXT",
        Resource: "record",
        ResourceID: 14,
        Status: 200,
        RequestID: "01JD4QK7Z8S3",
        Before: null,
        After: recordExample("TXT", "create"),
        Count: 1,
        LastDate: date,
      },
    ],
  },
  listEvents: {
    answer: [
      {
        ID: 991,
        Type: "record.created",
        Date: date,
        ProjectID: 1,
        Resource: "record",
        ResourceID: 14,
        ParentID: 3,
        TokenID: 2,
        RequestID: "01JD4QK7Z8S3",
        Data: recordExample("TXT", "create"),
      },
    ],
  },
  readHealth: { answer: { Status: "ok" } },
  readReadiness: {
    answer: {
      Status: "ready",
      Checks: [
        { Name: "database", Ok: true, Detail: "sqlite" },
        { Name: "nameserver", Ok: true, Detail: "127.0.0.1:5353" },
      ],
    },
  },
};
