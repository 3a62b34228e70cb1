/**
 * One conversation per operation: what is sent and what comes back. They stand in the OpenAPI document and on the page of
 * documentation, are checked against their schemas by a law, and are written as the schemas want them (the service also takes
 * `"3"` for `3`). All tell of one small installation, so that ids mean the same thing from one example to the next.
 */

import type { Contract, OperationName } from "./contract.ts";
import type { AppliedChange, DnsRecord, Domain, RecordFields } from "./dns.ts";
import type { Answer, Body, Operation } from "./operation.ts";

export interface Example<Op extends Operation = Operation> {
  /** Ids of the path, in the order in which they stand there. */
  readonly path?: readonly number[];
  readonly request?: Body<Op>;
  readonly answer?: Answer<Op>;
}

export type Examples = { readonly [Name in OperationName]?: Example<Contract[Name]> };

const date = "2026-11-20T09:15:00.120Z";

const fields = (given: RecordFields) => given;

const record = (given: Partial<DnsRecord>): DnsRecord => ({
  ID: 8,
  TypeRecord: "A",
  IP: "",
  HostName: "@",
  Priority: "",
  Text: "",
  MnemonicName: "",
  ExtHostName: "",
  State: "Active",
  DateCreate: date,
  Service: "",
  Proto: "",
  Weight: "",
  TTL: 3600,
  Port: "",
  Target: "",
  CanonicalDescription: "",
  PunyName: "@",
  DomainID: 3,
  Labels: {},
  ...given,
});

const a = (ip: string, ttl: number) =>
  record({
    IP: ip,
    HostName: "www.example.com.",
    TTL: ttl,
    CanonicalDescription: `www.example.com. ${ttl} IN A ${ip}`,
    PunyName: "www.example.com.",
  });
const aaaa = (ip: string) =>
  record({ ID: 9, TypeRecord: "AAAA", IP: ip, CanonicalDescription: `@ 3600 IN AAAA ${ip}` });
const cname = (target: string) =>
  record({
    ID: 10,
    TypeRecord: "CNAME",
    HostName: target,
    MnemonicName: "blog.example.com.",
    CanonicalDescription: `blog.example.com. 3600 IN CNAME ${target}`,
    PunyName: "blog.example.com.",
  });
const mx = (priority: number) =>
  record({
    ID: 11,
    TypeRecord: "MX",
    Priority: String(priority),
    ExtHostName: "mail.example.com.",
    CanonicalDescription: `@ 3600 MX ${priority} mail.example.com.`,
  });
const ns = (ttl: number) =>
  record({
    ID: 12,
    TypeRecord: "NS",
    HostName: "lab.example.com.",
    ExtHostName: "ns.example.net.",
    TTL: ttl,
    CanonicalDescription: `lab.example.com. ${ttl} IN NS ns.example.net.`,
    PunyName: "lab.example.com.",
  });
const srv = (weight: number, port: number) =>
  record({
    ID: 13,
    TypeRecord: "SRV",
    Priority: "20",
    Service: "_xmpp-client.",
    Proto: "tcp",
    Weight: String(weight),
    Port: String(port),
    Target: "chat.example.com.",
    CanonicalDescription: `_xmpp-client._tcp.example.com. 3600 IN SRV 20 ${weight} ${port} chat.example.com.`,
  });
const txt = (text: string) =>
  record({
    ID: 14,
    TypeRecord: "TXT",
    HostName: "_acme-challenge.example.com.",
    Text: `"${text}" `,
    TTL: 60,
    CanonicalDescription: `_acme-challenge.example.com. 60 IN TXT "${text}"`,
    PunyName: "_acme-challenge.example.com.",
  });

const domain = (records: DnsRecord[], serial: number, labels: Record<string, string> = {}): Domain => ({
  ID: 3,
  Name: "example.com",
  NamePunyCode: "example.com",
  TechName: "example_com",
  State: "Active",
  DateCreate: date,
  IsDelegate: false,
  LinkedRecords: records,
  NameServers: ["ns1.brume.internal"],
  Serial: serial,
  Import: null,
  Labels: labels,
});

const moved: AppliedChange = { Op: "Update", Before: a("10.63.0.2", 3600), After: a("10.63.0.3", 300) };
const removed: AppliedChange = { Op: "Delete", Before: txt("abc"), After: null };

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

export const examples: Examples = {
  listDomains: { answer: [domain([txt("abc")], 1_795_166_100)] },
  createDomain: { request: { Name: "example.com" }, answer: domain([], 1_795_166_100) },
  readDomain: { path: [3], answer: domain([a("10.63.0.2", 3600), txt("abc")], 1_795_166_411) },
  updateDomain: {
    path: [3],
    request: { Labels: { team: "web" } },
    answer: domain([], 1_795_166_100, { team: "web" }),
  },
  deleteDomain: { path: [3] },
  changeRecords: {
    path: [3],
    request: {
      Changes: [
        { Op: "Update", ID: 8, IP: "10.63.0.3", TTL: 300 },
        { Op: "Delete", ID: 14 },
      ],
    },
    answer: { Serial: 1_795_166_412, Created: 0, Updated: 1, Deleted: 1, Records: [moved, removed] },
  },
  importZone: {
    path: [3],
    request: { ZoneFile: "www 300 IN A 10.63.0.3\n", Mode: "Replace" },
    answer: { Serial: 1_795_166_412, Created: 0, Updated: 1, Deleted: 1, Records: [moved, removed] },
  },
  listVersions: {
    path: [3],
    answer: [{ Serial: 1_795_166_412, Date: date, TokenID: 2, RequestID: "01JD4QK7Z8S3", Changes: [moved, removed] }],
  },
  restoreVersion: {
    path: [3],
    request: { Serial: 1_795_166_411 },
    answer: {
      Serial: 1_795_166_413,
      Created: 0,
      Updated: 1,
      Deleted: 0,
      Records: [{ Op: "Update", Before: a("10.63.0.3", 300), After: a("10.63.0.2", 3600) }],
    },
  },
  readRecord: { path: [8], answer: a("10.63.0.2", 3600) },
  deleteRecord: { path: [3, 14] },
  createRecordA: {
    request: fields({ DomainId: 3, IP: "10.63.0.2", Name: "www", TTL: 3600 }),
    answer: a("10.63.0.2", 3600),
  },
  updateRecordA: {
    path: [8],
    request: fields({ DomainId: 3, IP: "10.63.0.3", Name: "www.example.com", TTL: 300 }),
    answer: a("10.63.0.3", 300),
  },
  createRecordAAAA: { request: fields({ DomainId: 3, IP: "2001:0DB8::17", Name: "@" }), answer: aaaa("2001:db8::17") },
  updateRecordAAAA: { path: [9], request: fields({ DomainId: 3, IP: "2001:db8::18" }), answer: aaaa("2001:db8::18") },
  createRecordCNAME: { request: fields({ DomainId: 3, Name: "@", MnemonicName: "blog" }), answer: cname("@") },
  updateRecordCNAME: {
    path: [10],
    request: fields({ DomainId: 3, Name: "pages.example.net", MnemonicName: "blog" }),
    answer: cname("pages.example.net."),
  },
  createRecordMX: { request: fields({ DomainId: 3, HostName: "mail.example.com", Priority: 10 }), answer: mx(10) },
  updateRecordMX: { path: [11], request: fields({ DomainId: 3, HostName: "mail", Priority: 20 }), answer: mx(20) },
  createRecordNS: { request: fields({ DomainId: 3, HostName: "lab", Name: "ns.example.net" }), answer: ns(3600) },
  updateRecordNS: {
    path: [12],
    request: fields({ DomainId: 3, HostName: "lab", Name: "ns.example.net", TTL: 600 }),
    answer: ns(600),
  },
  createRecordSRV: {
    request: fields({
      DomainId: 3,
      Service: "xmpp-client",
      Proto: "tcp",
      Name: "@",
      Priority: 20,
      Weight: 0,
      Port: 5222,
      Target: "chat.example.com",
    }),
    answer: srv(0, 5222),
  },
  updateRecordSRV: {
    path: [13],
    request: fields({
      DomainId: 3,
      Service: "_xmpp-client.",
      Proto: "tcp",
      Name: "@",
      Priority: 20,
      Weight: 5,
      Port: 5223,
      Target: "chat",
    }),
    answer: srv(5, 5223),
  },
  createRecordTXT: {
    request: fields({ DomainId: 3, TTL: 60, Name: "_acme-challenge.example.com", Text: "abc" }),
    answer: txt("abc"),
  },
  updateRecordTXT: {
    path: [14],
    request: fields({ DomainId: 3, Name: "_acme-challenge", TTL: 60, Text: "def" }),
    answer: txt("def"),
  },
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
        ],
        ProjectID: 1,
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
        After: txt("abc"),
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
        Data: txt("abc"),
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
