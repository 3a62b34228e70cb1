/**
 * What the contract does not contain: the words of commands whose operation id is no plain verb and noun, arguments without a flag, and
 * short names of flags. Everything else is derived from the contract (`commands.ts`), also for operations that are added later.
 */

/** Verbs that begin an operation id, and the verb of the command. */
export const verbs: Readonly<Record<string, string>> = {
  list: "list",
  read: "get",
  create: "create",
  update: "update",
  delete: "delete",
};

/** Words of commands, by operation id. */
export const words: Readonly<Record<string, string>> = {
  listActions: "action list",
  startAction: "action start",
  createBatch: "group create",
  deleteBatch: "group delete",
  writeImageContent: "image upload",
  readServerLog: "server log",
  readServerMetrics: "server metrics",
  openConsole: "server open-console",
  changeRecords: "domain change",
  importZone: "domain import",
  listVersions: "domain history",
  restoreVersion: "domain restore",
  configureVpn: "vpn set",
  readVpnStatus: "vpn status",
  readTunnelPeer: "vpn peer",
  issueTunnelPeer: "vpn issue",
  configureFirewall: "firewall set",
  checkFirewall: "firewall check",
  readBalance: "account balance",
  readOwnProject: "project current",
  deleteDiskCopies: "disk-copy delete",
  listDeliveries: "webhook deliveries",
  resendDelivery: "webhook resend",
  readHealth: "service health",
  deleteOwnSession: "session end",
  readReadiness: "service ready",
  readOpenapi: "service openapi",
  readDocs: "service docs",
  readMetrics: "service metrics",
  readDomainMetrics: "domain metrics",
  listSettings: "service settings",
};

/** Nouns that contain several commands, and what they are about. A test checks that every noun has a line. */
export const nouns: Readonly<Record<string, string>> = {
  account: "the account and its balance",
  acme: "challenges of certificate authorities",
  action: "work on servers: list, start, cancel",
  adapter: "servers for other programs: httpreq, ExternalDNS",
  audit: "who changed what",
  claim: "claims of domains that another project has",
  config: "settings of the service",
  context: "installations and their tokens",
  "disk-copy": "copies of disks for a backup",
  dns: "zone files: import, export, compare",
  domain: "domains and their history",
  event: "changes of all objects",
  firewall: "the firewall of a public network",
  group: "servers that are created and deleted together",
  image: "images of operating systems",
  location: "locations and their capacity",
  network: "private networks",
  orphan: "disks on the host that the database does not contain",
  project: "projects and quotas",
  "public-network": "public networks with router, firewall and VPN",
  record: "records of domains",
  reservation: "names that no project can create",
  server: "virtual servers",
  service: "health, metrics and reference of the service",
  session: "sessions of browsers",
  "ssh-key": "SSH keys",
  token: "access tokens",
  vpn: "tunnels of a public network",
  webhook: "HTTP calls for events",
  "withdrawn-domain": "domains that another project claimed",
};

const listing = ["list"];
const removal = ["delete"];
const reading = ["get", "list", "status", "logs"];
const creation = ["create", "issue", "add"];
const change = ["update", "set"];

/** Words of other command lines, and the words of commands that they may mean. */
export const synonyms: Readonly<Record<string, readonly string[]>> = {
  ls: listing,
  rm: removal,
  remove: removal,
  destroy: removal,
  show: reading,
  describe: reading,
  info: reading,
  get: reading,
  new: creation,
  add: creation,
  edit: change,
  change,
  modify: change,
  rename: change,
  resize: change,
  upgrade: change,
  start: ["power-on"],
  stop: ["shutdown", "power-off"],
  restart: ["reboot", "reset"],
  reinstall: ["rebuild"],
  clone: ["copy"],
  backup: ["update", "copy"],
  connect: ["attach", "ssh"],
  disconnect: ["detach"],
  log: ["logs"],
  vm: ["server"],
  vms: ["server"],
  instance: ["server"],
  zone: ["domain", "dns"],
  key: ["ssh-key"],
  user: ["token", "project"],
  login: ["context", "ssh"],
  status: ["get", "doctor"],
};

/** A field that is an argument, has another flag, or is not offered. */
export interface FieldWording {
  readonly argument?: string;
  /** Takes the content of the named file. */
  readonly file?: boolean;
  readonly flag?: string;
  readonly hidden?: boolean;
  readonly description?: string;
}

const record = { DomainId: { argument: "DOMAIN" }, HostName: { hidden: true } };
const owner = { argument: "NAME", description: "Owner, relative to the domain; `@` is the domain itself." };

/** Wording of fields, by operation id and field. */
export const fields: Readonly<Record<string, Readonly<Record<string, FieldWording>>>> = {
  createServer: { Name: { argument: "NAME" } },
  createBatch: { Name: { argument: "NAME" } },
  copyServer: { Name: { argument: "[NAME]" } },
  deleteBatch: { ID: { argument: "[GROUP]" }, ServerIDs: { flag: "servers" } },
  createImage: { Name: { argument: "NAME" }, ServerID: { flag: "server" }, Size: { hidden: true } },
  createSshKey: { Title: { argument: "NAME" } },
  createDomain: { Name: { argument: "NAME" } },
  createClaim: { Name: { argument: "NAME" } },
  createReservation: { Name: { argument: "NAME" } },
  createPublicNetwork: { Name: { argument: "NAME" }, NetworkCapacity: { flag: "prefix" } },
  createNetwork: { Name: { argument: "NAME" } },
  createProject: { Name: { argument: "NAME" } },
  createToken: { Name: { argument: "NAME" } },
  createWebhook: { Url: { argument: "URL" } },
  createDiskCopy: { ServerID: { argument: "SERVER" } },
  importZone: { ZoneFile: { argument: "FILE", file: true } },
  restoreVersion: { Serial: { argument: "SERIAL" } },
  createRecordA: { ...record, Name: owner, IP: { argument: "ADDRESS" } },
  createRecordAAAA: { ...record, Name: owner, IP: { argument: "ADDRESS" } },
  createRecordCNAME: {
    ...record,
    MnemonicName: { argument: "NAME", description: "The alias, relative to the domain." },
    Name: { flag: "target", description: "The name that the alias points to." },
  },
  updateRecordCNAME: {
    HostName: { hidden: true },
    MnemonicName: { flag: "name", description: "The alias, relative to the domain." },
    Name: { flag: "target", description: "The name that the alias points to." },
  },
  createRecordMX: {
    DomainId: { argument: "DOMAIN" },
    Name: owner,
    HostName: { flag: "mail-server", description: "Host name of the mail server." },
    ExtHostName: { hidden: true },
  },
  createRecordNS: {
    DomainId: { argument: "DOMAIN" },
    HostName: owner,
    Name: { flag: "name-server", description: "Host name of the name server." },
    ExtHostName: { hidden: true },
  },
  createRecordTXT: { ...record, Name: owner },
  createRecordSRV: { ...record, Name: owner },
};

/** Flags of fields with the same name in all operations. */
export const flags: Readonly<Record<string, string>> = {
  DCLocation: "location",
  isBackupActive: "backup",
  BackupPeriod: "backup-days",
  ImageID: "image",
  ImageId: "image",
  NetworkID: "network",
  NetworkId: "network",
  NetworkLinkID: "link",
  NetworkIP: "network-ip",
  ProjectID: "project",
  DomainID: "domain",
  ServerID: "server",
  ServerIDs: "servers",
  Labels: "label",
  SshKeys: "ssh-key",
  IsDHCP: "dhcp",
  CIDR: "cidr",
  HDDType: "hdd-type",
  TTL: "ttl",
};

/**
 * Fields of updates (`PUT`) whose description keeps its default, by operation id: they are no stored values, or an absent one is reset. Any
 * other absent field keeps its stored value.
 */
export const updateDefaults: Readonly<Record<string, readonly string[]>> = {
  updateServer: ["AllowRestart"],
  configureFirewall: ["Enabled", "DefaultRuleAction"],
};

/** Words of the API in descriptions of operations, and those of the command line. */
export const phrases: readonly (readonly [api: string, command: string])[] = [
  ["`GET …/vpn/status`", "`brume vpn status`"],
  ["`dryRun`", "`--dry-run`"],
  ["`AllowRestart: false`", "`--no-allow-restart`"],
];

/** Power and network actions as commands of servers: words, type of the action, its fields, summary. */
export const actions: readonly (readonly [verb: string, type: string, fields: readonly string[], summary: string])[] = [
  ["power-on", "PowerOn", ["WaitFor", "OnBusy"], "Power on a server"],
  ["power-off", "PowerOff", ["OnBusy"], "Cut the power of a server"],
  ["reset", "PowerReboot", ["WaitFor", "OnBusy"], "Reset a server"],
  ["shutdown", "ShutDownGuestOS", ["Timeout", "Force", "OnBusy"], "Shut down the operating system of a server"],
  ["reboot", "RebootGuestOS", ["Timeout", "Force", "WaitFor", "OnBusy"], "Reboot the operating system of a server"],
  ["attach", "AddNetwork", ["NetworkID", "Bandwidth", "IP", "OnBusy"], "Link a server to a network"],
  ["detach", "RemoveNetwork", ["NetworkID", "NetworkLinkID", "OnBusy"], "Remove the link of a server to a network"],
  [
    "set-bandwidth",
    "EditNetworkBandwidth",
    ["NetworkID", "NetworkLinkID", "Bandwidth", "OnBusy"],
    "Set the bandwidth of a link",
  ],
];

/** Further commands of operations: operation id, words, the fields that the command sets, summary. They have no flags of the operation. */
export const variants: readonly (readonly [
  operation: string,
  words: string,
  body: Readonly<Record<string, unknown>>,
  summary: string,
])[] = [["configureFirewall", "firewall confirm", { Confirm: true }, "Keep the rules of `set --confirm-within`"]];

/** Commands that delete, or overwrite data of a user, besides those with method DELETE: they prompt first. */
export const destructive: ReadonlySet<string> = new Set(["rebuildServer", "restoreVersion"]);
