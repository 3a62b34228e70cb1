/**
 * One conversation per operation: what is sent and what comes back. They stand in the OpenAPI document and on the page of
 * documentation, are checked against their schemas by a law, and are written as the schemas want them (the service also takes
 * `"3"` for `3`). All tell of one small installation, so that ids mean the same thing from one example to the next.
 */

import type { Action } from "./action.ts";
import type { Image, SshKey } from "./catalog.ts";
import type { Contract, OperationName } from "./contract.ts";
import type { AppliedChange, DnsRecord, Domain, RecordFields } from "./dns.ts";
import type { Firewall } from "./firewall.ts";
import type { Network, PublicNetwork } from "./network.ts";
import type { Answer, Body, Operation } from "./operation.ts";
import type { Server, ServerLink } from "./server.ts";
import type { Tunnel } from "./vpn.ts";

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

const closed: Firewall = { Enabled: false, DefaultRuleAction: "Deny", Rules: [], ConfirmBy: null };
const web = {
  Name: "web",
  Action: "Allow",
  Protocol: "Tcp",
  Destination: "10.64.0.10",
  DestinationPort: "80,443",
} as const;
const out = { Name: "out", Action: "Allow", Protocol: "Any", Source: "internal", Destination: "external" } as const;

/** With what was counted by the rule `web` and by the rule `out`. */
const webOnly = (hits: readonly [number, number], others: readonly [number, number]): Firewall => ({
  Enabled: true,
  DefaultRuleAction: "Deny",
  Rules: [
    {
      Number: 1,
      Name: "web",
      Action: "Allow",
      Protocol: "Tcp",
      Source: "any",
      SourcePort: "any",
      Destination: "10.64.0.10",
      DestinationPort: "80,443",
      Packets: hits[0],
      Bytes: hits[1],
      LastHit: hits[0] === 0 ? null : "2026-11-20T09:20:11.007Z",
    },
    {
      Number: 2,
      Name: "out",
      Action: "Allow",
      Protocol: "Any",
      Source: "internal",
      SourcePort: "any",
      Destination: "external",
      DestinationPort: "any",
      Packets: others[0],
      Bytes: others[1],
      LastHit: others[0] === 0 ? null : "2026-11-20T09:20:12.450Z",
    },
  ],
  ConfirmBy: null,
});

const peerConfig = "connections { brume-3 { version = 2 … } }";

const office: Tunnel = {
  Id: 3,
  State: "Active",
  Name: "office",
  Enabled: true,
  Mtu: 1400,
  EncryptionType: "Aes256",
  SharedKey: "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu",
  PeerNetwork: "10.0.0.0/24",
  PeerEndpoint: "203.0.113.50",
  PeerIdentificator: "203.0.113.50",
  Type: "IPsec",
  LocalNetwork: "10.64.0.8/29",
  LocalIdentificator: "10.64.255.2",
  IkeVersion: 2,
  DhGroup: 14,
  Digest: "Sha256",
  PerfectForwardSecrecy: true,
  PeerPublicKey: "",
  PublicKey: "",
  ListenPort: null,
  KeepAlive: null,
  PeerConfig: peerConfig,
  Labels: {},
};

const publicNetwork = (given: Partial<PublicNetwork> = {}): PublicNetwork => ({
  Id: 5,
  Name: "dmz",
  State: "Active",
  Mask: "255.255.255.248",
  Gateway: "10.64.0.9",
  CIDR: "10.64.0.8/29",
  EdgeExternalIp: "10.64.255.2",
  LinkedServers: [
    { LinkState: "Active", IP: "10.64.0.10", MAC: "02:42:00:00:00:20", ServerID: 17, LinkID: 32, IP6: "" },
  ],
  IsDHCP: true,
  DCLocation: "Local",
  NetworkCapacity: "29",
  Type: "PublicClient",
  Bandwidth: 100,
  Firewall: closed,
  Vpn: { Tunnels: [] },
  DateCreate: date,
  Generation: 1,
  AppliedGeneration: 1,
  Error: null,
  CIDR6: null,
  Gateway6: null,
  Labels: {},
  ...given,
});

const back = (given: Partial<Network> = {}): Network => ({
  ID: 6,
  Name: "back",
  State: "Active",
  Mask: "255.255.255.0",
  Gateway: "",
  Bandwidth: 1000,
  LinkedServers: [],
  IsDHCP: false,
  DCLocation: "Local",
  NetworkCapacity: "24",
  Type: "PrivateClient",
  CIDR: "172.16.0.0/24",
  DateCreate: date,
  Error: null,
  Labels: {},
  ...given,
});

const laptop: SshKey = {
  ID: 7,
  Title: "laptop",
  PublicKey: "AAAAC3NzaC1lZDI1NTE5AAAAIE3p6k3o0o3p0l7mYw2bq1Xn4rZ8t5v9cQ1sD2fG3hJ4",
  IsActive: true,
  Type: "ssh-ed25519",
  Comment: "ann@laptop",
  Fingerprint: "SHA256:VuHrq6jTQnl9j+L3P2O5jpsrgwlEQgqP3g/sycoSk10",
  DateCreate: date,
  Labels: {},
};

const tiny: Image = {
  ID: 1,
  Name: "brume-tiny",
  DisplayName: "Brume Tiny Linux",
  DCLocation: null,
  Hdd: 1,
  Family: "Linux",
  IsAvailableISP: false,
  IsISPLiteEnabled: false,
  IsISPBusinessEnabled: false,
  Type: "GoldServer",
  LinkedSshKeys: [],
  OperatingSystemType: "Linux",
  TechName: "brume-tiny",
  State: "Active",
  MinRAM: 128,
  DateCreate: date,
  Error: null,
  ServerID: null,
  Progress: 100,
  Labels: {},
};

const link = (id: number, ip: string, mac: string, state: ServerLink["LinkState"] = "Active"): ServerLink => ({
  LinkID: id,
  NetworkID: 1,
  LinkState: state,
  NetworkType: "PublicShared",
  NetworkName: "Shared",
  IP: ip,
  MAC: `02:42:00:00:00:${mac}`,
  Mask: "255.255.0.0",
  Gateway: "10.63.0.1",
  Bandwidth: 100,
  IP6: "",
});

const server = (given: Partial<Server> = {}): Server => ({
  ID: 17,
  Name: "web-1",
  HostName: "web-1",
  State: "Active",
  IsPowerOn: true,
  CPU: 1,
  RAM: 512,
  HDD: 10,
  IP: given.LinkedNetworks?.[0]?.IP ?? "10.63.0.2",
  AdminUserName: "root",
  AdminPassword: "k7Rw2mQx9TzB4nLc",
  Image: "brume-tiny",
  IsHighPerformance: false,
  HDDType: "SSD",
  PrimaryNetworkIp: given.LinkedNetworks?.[0]?.IP ?? "10.63.0.2",
  LinkedNetworks: [link(31, "10.63.0.2", "1f")],
  DCLocation: "Local",
  ImageFamily: "Linux",
  LinkedSshKeys: [laptop],
  DateCreate: date,
  ImageID: 1,
  BatchID: null,
  IsProtected: false,
  Error: null,
  isBackupActive: false,
  BackupPeriod: 7,
  Labels: { env: "prod" },
  ...given,
});

const made = (given: Partial<Server>): Server => server({ State: "New", IsPowerOn: false, ...given });
const node = (id: number, number: number, ip: string, mac: string, password: string): Server =>
  made({
    ID: id,
    Name: `node-${number}`,
    HostName: `node-${number}`,
    RAM: 256,
    HDD: 2,
    AdminPassword: password,
    LinkedNetworks: [link(33 + number, ip, mac, "New")],
    LinkedSshKeys: [],
    BatchID: 4,
    Labels: {},
  });

const later = "2026-11-20T09:20:11.007Z";
const step = (name: string, start: string | null, end: string | null, detail = ""): Action["Steps"][number] => ({
  Name: name,
  State: end !== null ? "Completed" : start !== null ? "InProgress" : "Pending",
  StartDate: start,
  EndDate: end,
  Detail: detail,
});
const creation: Action = {
  ID: 51,
  Type: "Create",
  State: "Completed",
  StartDate: date,
  EndDate: "2026-11-20T09:15:03.480Z",
  ServerID: 17,
  Progress: 100,
  Steps: [
    step("Reserve", date, date, "10.63.0.2 on network 1"),
    step("Disk", date, "2026-11-20T09:15:00.310Z", "10 GB from brume-tiny"),
    step("Network", "2026-11-20T09:15:00.310Z", "2026-11-20T09:15:00.350Z"),
    step("Boot", "2026-11-20T09:15:00.350Z", "2026-11-20T09:15:03.480Z", "power on"),
  ],
  Error: null,
};
const unanswered: Action = {
  ID: 56,
  Type: "ShutDownGuestOS",
  State: "Failed",
  StartDate: later,
  EndDate: "2026-11-20T09:22:11.010Z",
  ServerID: 17,
  Progress: 0,
  Steps: [
    {
      Name: "Shutdown",
      State: "Failed",
      StartDate: later,
      EndDate: "2026-11-20T09:22:11.010Z",
      Detail: "no answer to the power button within 120 s",
    },
  ],
  Error: {
    type: "/docs#guest_did_not_respond",
    title: "The guest did not respond.",
    detail: "Server 17 did not answer the power button within 120 s. Send PowerOff, or ShutDownGuestOS with Force.",
    code: "guest_did_not_respond",
    step: "Shutdown",
    log: null,
  },
};
const plugging: Action = {
  ID: 55,
  Type: "AddNetwork",
  State: "InProgress",
  StartDate: later,
  EndDate: null,
  ServerID: 17,
  Progress: 50,
  Steps: [step("Reserve", later, later, "10.64.0.10 on network 5"), step("Plug", later, null)],
  Error: null,
};
const resizing: Action = {
  ID: 52,
  Type: "Resize",
  State: "InProgress",
  StartDate: later,
  EndDate: null,
  ServerID: 17,
  Progress: 0,
  Steps: [step("Cpu", null, null), step("Memory", null, null), step("Disk", null, null)],
  Error: null,
};

export const examples: Examples = {
  listServers: { answer: [server()] },
  createServer: {
    request: {
      Name: "web-1",
      CPU: 1,
      RAM: 512,
      HDD: 10,
      ImageID: "1",
      HDDType: "SSD",
      IsHighPerformance: false,
      DCLocation: "Local",
      SshKeys: [7],
      Labels: { env: "prod" },
    },
    answer: made({ LinkedNetworks: [link(31, "10.63.0.2", "1f", "New")] }),
  },
  readServer: { path: [17], answer: server() },
  updateServer: {
    path: [17],
    request: { CPU: 2, RAM: 1024, HDD: 20, HDDType: "SSD", IsHighPerformance: false },
    answer: resizing,
  },
  deleteServer: { path: [17] },
  copyServer: {
    path: [17],
    request: { Name: "web-2" },
    answer: made({
      ID: 18,
      Name: "web-2",
      HostName: "web-2",
      AdminPassword: "p4Yv8sKd3JhQ6wEz",
      LinkedNetworks: [link(33, "10.63.0.3", "21", "New")],
      DateCreate: later,
    }),
  },
  rebuildServer: {
    path: [17],
    request: { ImageId: "2" },
    answer: server({ AdminPassword: "Zt6mB1xV9cQr5uHa", Image: "debian-12", ImageID: 2 }),
  },
  startAction: { path: [17], request: { Type: "AddNetwork", NetworkID: 5 }, answer: plugging },
  listActions: { path: [17], answer: [unanswered, creation] },
  readAction: { path: [17, 51], answer: creation },
  cancelAction: {
    path: [17, 55],
    answer: {
      ...plugging,
      State: "Canceled",
      EndDate: "2026-11-20T09:20:12.450Z",
      Steps: plugging.Steps.map((one) => ({ ...one, State: "Undone", EndDate: "2026-11-20T09:20:12.450Z" })),
      Error: {
        type: "/docs#superseded",
        title: "Something else was asked for.",
        detail: "It was canceled by token 1.",
        code: "superseded",
        step: "Plug",
        log: null,
      },
    },
  },
  createBatch: {
    request: { Name: "node-{n}", Count: 2, CPU: 1, RAM: 256, HDD: 2, ImageID: "1", Policy: "Atomic" },
    answer: {
      ID: 4,
      Policy: "Atomic",
      State: "New",
      Servers: [node(19, 1, "10.63.0.4", "22", "a1Sd4fGh7JkL0zXc"), node(20, 2, "10.63.0.5", "23", "v5Bn8mQw2ErT6yUi")],
      Errors: [],
    },
  },
  deleteBatch: { request: { ServerIDs: [19, 20] } },
  readServerLog: { path: [17], answer: "Brume tiny 1\nweb-1 login: \n" },
  openConsole: {
    path: [17],
    request: { Type: "Serial" },
    answer: {
      Url: "ws://127.0.0.1:8080/console/5f1c0e7a9b3d4c2e8f6a1b0c9d8e7f6a",
      ExpiresAt: "2026-11-20T09:16:00.120Z",
    },
  },
  readServerMetrics: {
    path: [17],
    answer: {
      Step: 60,
      Times: ["2026-11-20T09:18:00.000Z", "2026-11-20T09:19:00.000Z"],
      Series: {
        Cpu: [2.5, 1.9],
        MemoryUsed: [61, 61],
        DiskRead: [4096, 0],
        DiskWrite: [8192, 512],
        NetIn: [120, 98],
        NetOut: [64, 80],
      },
    },
  },
  createImage: {
    request: { Name: "Web base", TechName: "web-base", ServerID: 17 },
    answer: {
      ...tiny,
      ID: 9,
      Name: "Web base",
      DisplayName: "Web base",
      DCLocation: "Local",
      Hdd: 10,
      Type: "Client",
      TechName: "web-base",
      State: "New",
      DateCreate: later,
      ServerID: 17,
      Progress: 0,
    },
  },
  deleteImage: { path: [9] },
  listImages: { answer: [tiny] },
  readImage: { path: [1], answer: tiny },
  listLocations: {
    answer: [
      {
        ID: 1,
        Title: "Local",
        TechTitle: "Local",
        ShortTitle: "Local",
        Country: "",
        City: "",
        IsEnableLowPool: true,
        IsEnableHighPool: true,
        IsEnableBackup: true,
        IsEnableIpV6: false,
        IsOnlyForAdmins: false,
        HiddenToNewProjects: false,
        IsFirewallEnabled: true,
        Engines: { Machine: "host", Router: "host", NameServer: "builtin" },
        Capacity: { CPU: 16, RAM: 23_552, HDD: 400, FreeCPU: 15, FreeRAM: 23_040, FreeHDD: 390 },
      },
    ],
  },
  listSshKeys: { answer: [laptop] },
  createSshKey: {
    request: { Title: "laptop", PublicKey: `ssh-ed25519 ${laptop.PublicKey} ann@laptop` },
    answer: laptop,
  },
  readSshKey: { path: [7], answer: laptop },
  deleteSshKey: { path: [7] },
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
  listPublicNetworks: { answer: [publicNetwork()] },
  createPublicNetwork: {
    request: { NetworkCapacity: "29", Name: "dmz", Bandwidth: 100, DCLocation: "Local" },
    answer: publicNetwork({ State: "FromPool", LinkedServers: [], AppliedGeneration: 0 }),
  },
  readPublicNetwork: {
    path: [5],
    answer: publicNetwork({
      Firewall: webOnly([812, 70_231], [44, 3120]),
      Vpn: { Tunnels: [office] },
      Generation: 4,
      AppliedGeneration: 4,
    }),
  },
  updatePublicNetwork: {
    path: [5],
    request: { Bandwidth: 200, Name: "edge" },
    answer: publicNetwork({ Name: "edge", Bandwidth: 200, Generation: 2, AppliedGeneration: 2 }),
  },
  deletePublicNetwork: { path: [5] },
  configureVpn: {
    path: [5],
    request: {
      Tunnels: [
        {
          Name: "office",
          EncryptionType: "Aes256",
          SharedKey: "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu",
          PeerNetwork: "10.0.0.0/24",
          PeerEndpoint: "203.0.113.50",
          PeerIdentificator: "203.0.113.50",
          Mtu: 1400,
          Enabled: true,
        },
      ],
    },
    answer: publicNetwork({
      Firewall: webOnly([0, 0], [0, 0]),
      Vpn: { Tunnels: [office] },
      Generation: 4,
      AppliedGeneration: 4,
    }),
  },
  readVpnStatus: {
    path: [5],
    answer: [
      {
        TunnelId: 3,
        Operational: true,
        State: "Up",
        Error: null,
        EstablishedAt: "2026-11-20T09:20:11.007Z",
        BytesIn: 104_857,
        BytesOut: 98_112,
        LastSeen: "2026-11-20T09:20:12.450Z",
        LocalSubnets: ["10.64.0.8/29"],
        PeerSubnets: ["10.0.0.0/24"],
        PeerAddress: "203.0.113.50",
        Proposal: "AES_CBC_256/HMAC_SHA2_256_128/MODP_2048",
      },
    ],
  },
  readTunnelPeer: { path: [5, 3], answer: { Peer: "strongswan", Config: peerConfig, Qr: "" } },
  configureFirewall: {
    path: [5],
    request: { Enabled: true, DefaultRuleAction: "Deny", Rules: [web, out] },
    answer: publicNetwork({ Firewall: webOnly([0, 0], [0, 0]), Generation: 3, AppliedGeneration: 3 }),
  },
  checkFirewall: {
    path: [5],
    request: { Protocol: "Tcp", Source: "203.0.113.5", Destination: "10.64.0.10", DestinationPort: 443 },
    answer: {
      Verdict: "Allow",
      Rule: 1,
      Reason: "Rule 1 (web) is the first that fits, and its Action is Allow.",
    },
  },
  listNetworks: { answer: [back()] },
  readNetwork: { path: [6], answer: back() },
  createNetwork: { request: { Name: "back", DCLocation: "Local", IsDHCP: false }, answer: back() },
  updateNetwork: {
    path: [6],
    request: { Name: "rear", Labels: { team: "web" } },
    answer: back({ Name: "rear", Labels: { team: "web" } }),
  },
  deleteNetwork: { path: [6] },
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
