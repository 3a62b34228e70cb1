/** Complete rows of a small installation, for tests of pure modules. A test sets only the columns that it is about. */
import type { ImageRow, SshKeyRow } from "../../service/src/catalog/table.ts";
import type { MachineStatus } from "../../service/src/drivers/machine/interface.ts";
import type { NetworkRow } from "../../service/src/network/table.ts";
import type { References, ServerSpec } from "../../service/src/server/model/plan.ts";
import type { ServerRow } from "../../service/src/server/table.ts";

export const created = Date.parse("2026-11-20T09:15:00.120Z");
const common = { created, labels: "{}", version: 1 };

/** Returns an image row. Ids below 10 are operator images; ids from 10 on are images of project 1. */
export const imageRow = (id: number, more: Partial<ImageRow> = {}): ImageRow => ({
  id,
  project_id: id < 10 ? null : 1,
  type: id < 10 ? "GoldServer" : "Client",
  name: id === 1 ? "brume-tiny" : id === 2 ? "debian-12" : `image-${id}`,
  display_name: id === 1 ? "Brume Tiny Linux" : `Image ${id}`,
  location: null,
  hdd: id === 1 ? 1 : 2,
  min_ram: id === 1 ? 128 : 256,
  family: "Linux",
  os: "Linux",
  tech_name: id === 1 ? "brume-tiny" : `image-${id}`,
  state: "Active",
  folder: `image-${id}`,
  server_id: null,
  progress: 100,
  error: null,
  identity: null,
  guest: id === 1 ? "tiny" : null,
  upload_size: null,
  upload_received: 0,
  upload_sha256: null,
  upload_due: null,
  ...common,
  ...more,
});

/** Returns an SSH key row of project 1. */
export const keyRow = (id: number, more: Partial<SshKeyRow> = {}): SshKeyRow => ({
  id,
  project_id: 1,
  title: id === 7 ? "laptop" : `key-${id}`,
  type: "ssh-ed25519",
  base64: "AAAAC3NzaC1lZDI1NTE5AAAAIE3p6k3o0o3p0l7mYw2bq1Xn4rZ8t5v9cQ1sD2fG3hJ4",
  comment: "ann@laptop",
  fingerprint: "SHA256:VuHrq6jTQnl9j+L3P2O5jpsrgwlEQgqP3g/sycoSk10",
  ...common,
  ...more,
});

/** Returns the row of an active public network. */
export const networkRow = (id: number, more: Partial<NetworkRow> = {}): NetworkRow => ({
  id,
  project_id: 1,
  kind: "public",
  name: "dmz",
  state: "Active",
  location: "Local",
  first: "0a400008",
  last: "0a40000f",
  gateway: "0a400009",
  edge: "0a40ff02",
  first6: null,
  is_dhcp: 1,
  bandwidth: 100,
  firewall: "{}",
  fallback: null,
  confirm_by: null,
  wireguard: null,
  wireguard_public: null,
  wireguard_port: null,
  outside: null,
  generation: 1,
  applied: 1,
  error: null,
  ...common,
  ...more,
});

/** Returns the row of an active server that is on. */
export const serverRow = (id: number, more: Partial<ServerRow> = {}): ServerRow => ({
  id,
  project_id: 1,
  batch_id: null,
  name: "web-1",
  host_name: "web-1",
  state: "Active",
  is_on: 1,
  cpu: 1,
  ram: 512,
  hdd: 10,
  held_cpu: 1,
  held_ram: 512,
  held_hdd: 10,
  is_high_performance: 0,
  hdd_type: "SSD",
  location: "Local",
  image_id: 1,
  image_name: "brume-tiny",
  family: "Linux",
  guest: "tiny",
  admin_password: new Uint8Array(),
  user_data: null,
  disk_version: 1,
  boot: 1,
  is_protected: 0,
  is_backup_active: 0,
  backup_period: 7,
  backed_up: null,
  backup_failed: null,
  condition: "Normal",
  crashes: 0,
  error: null,
  ...common,
  ...more,
});

/** Returns the plan of a server that was requested with a name only. */
export const serverSpec = (more: Partial<ServerSpec> = {}): ServerSpec => ({
  name: "web-1",
  hostName: "web-1",
  cpu: 1,
  ram: 512,
  hdd: 10,
  fast: false,
  hddType: "SSD",
  location: "Local",
  image: imageRow(1),
  keys: [],
  network: null,
  bandwidth: null,
  ip: null,
  ipPointer: "/NetworkIP",
  userData: null,
  waitFor: "Power",
  isProtected: false,
  isBackupActive: false,
  backupPeriod: 7,
  labels: {},
  ...more,
});

/** Returns the row of a new server without its id, for an insert. */
export function newServerRow(more: Partial<ServerRow> = {}): Omit<ServerRow, "id"> {
  const { id: _, ...row } = serverRow(0, more);
  return row;
}

interface Rows {
  readonly images?: readonly ImageRow[];
  readonly locations?: readonly string[];
  readonly networks?: readonly NetworkRow[];
  readonly keys?: readonly SshKeyRow[];
}

const byId = <T extends { readonly id: number }>(rows: readonly T[]) => new Map(rows.map((row) => [row.id, row]));

/** Returns images 1 and 2, network 5 and keys 7 and 8 of location `Local`; the given rows are added or replace those of the same id. */
export const references = ({
  images = [],
  locations = ["Local"],
  networks = [],
  keys = [],
}: Rows = {}): References => ({
  images: [...byId([imageRow(1), imageRow(2), ...images]).values()].sort((one, other) => one.id - other.id),
  locations,
  networks: byId([networkRow(5), ...networks]),
  keys: byId([keyRow(7), keyRow(8), ...keys]),
});

/** Returns the status of the VM of server 17: off, with one disk. */
export const machineStatus = (more: Partial<MachineStatus> = {}): MachineStatus => ({
  id: 17,
  label: null,
  power: "off",
  trouble: null,
  canResume: false,
  since: null,
  exit: null,
  boot: 1,
  version: 0,
  cpus: 0,
  memory: 0,
  reach: { cpus: 0, memory: 0 },
  stage: null,
  disks: [{ version: 1, gb: 10, allocated: 0 }],
  usage: null,
  detail: "",
  ...more,
});
