/** The row of a server that does not run yet: what was planned, and what only the moment of making knows. */

import type { ServerSpec } from "./plan.ts";
import type { NewServer } from "./table.ts";

export interface Making {
  readonly project: number;
  readonly batch: number | null;
  /** Sealed. */
  readonly password: Uint8Array;
  /** Sealed; null: the spec has none. */
  readonly userData: Uint8Array | null;
  readonly now: number;
}

/** Without a host name of its own (`hostName` null) it is named after its id as soon as it has one. */
export const freshRow = (spec: ServerSpec, { project, batch, password, userData, now }: Making): NewServer => ({
  project_id: project,
  batch_id: batch,
  name: spec.name,
  host_name: spec.hostName ?? "",
  state: "New",
  is_on: 1,
  cpu: spec.cpu,
  ram: spec.ram,
  hdd: spec.hdd,
  held_cpu: spec.cpu,
  held_ram: spec.ram,
  held_hdd: spec.hdd,
  is_high_performance: spec.fast ? 1 : 0,
  hdd_type: spec.hddType,
  location: spec.location,
  image_id: spec.image.id,
  image_name: spec.image.name,
  family: spec.image.family,
  guest: spec.image.guest,
  admin_password: password,
  user_data: userData,
  disk_version: 1,
  boot: 1,
  is_protected: spec.isProtected ? 1 : 0,
  is_backup_active: spec.isBackupActive ? 1 : 0,
  backup_period: spec.backupPeriod,
  backed_up: null,
  error: null,
  created: now,
  labels: JSON.stringify(spec.labels),
  version: 1,
});
