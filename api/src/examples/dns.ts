/** Domain 3, `example.com`, and its records. */
import type { AppliedChange, DnsRecord, Domain, RecordFields } from "../dns.ts";
import { date, type Examples } from "./example.ts";

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
export const txt = (text: string) =>
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
  Delegation: "Unknown",
  Labels: labels,
});

const moved: AppliedChange = { Op: "Update", Before: a("10.63.0.2", 3600), After: a("10.63.0.3", 300) };
const removed: AppliedChange = { Op: "Delete", Before: txt("abc"), After: null };

export const dnsExamples: Examples = {
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
};
