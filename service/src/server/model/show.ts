/** Builds servers, actions and groups for responses. The keys keep the order of the contract, on which existing clients rely. */
import type { Action } from "@brume/api/action.ts";
import type { Batch } from "@brume/api/batch.ts";
import type { Family } from "@brume/api/catalog.ts";
import { formatDate, type Labels } from "@brume/api/common.ts";
import type { Server, ServerLink } from "@brume/api/server.ts";
import { type StoredError, showMachineError } from "@brume/api/work.ts";
import { showSshKey } from "../../catalog/model/show.ts";
import type { SshKeyRow } from "../../catalog/table.ts";
import type { BatchRow, ServerRow, ShownRow } from "../table.ts";
import { actionTypeOf } from "./state.ts";

/** Returns the name of the administrator of a guest. */
export const adminOf = (family: Family): string => (family === "Windows" ? "Administrator" : "root");

/** Parts of a server that are not in its row. */
export interface ServerDetails {
  /** In order of id. */
  readonly links: readonly ServerLink[];
  /** Keys that were set when it was created or rebuilt. */
  readonly keys: readonly SshKeyRow[];
  /** Plain text, or empty for callers that may not see it. */
  readonly password: string;
  /** Whether the VM was on when last observed. */
  readonly isOn: boolean;
}

/** Returns the server as responses show it. */
export function showServer(row: ShownRow, { links, keys, password, isOn }: ServerDetails): Server {
  const reachable = links.find(({ NetworkType }) => NetworkType !== "PrivateClient");
  return {
    ID: row.id,
    Name: row.name,
    HostName: row.host_name,
    State: row.state,
    IsPowerOn: isOn,
    CPU: row.cpu,
    RAM: row.ram,
    HDD: row.hdd,
    IP: reachable?.IP ?? "",
    AdminUserName: adminOf(row.family),
    AdminPassword: password,
    Image: row.image_name,
    IsHighPerformance: row.is_high_performance === 1,
    HDDType: row.hdd_type,
    PrimaryNetworkIp: links[0]?.IP ?? "",
    LinkedNetworks: [...links],
    DCLocation: row.location,
    ImageFamily: row.family,
    LinkedSshKeys: keys.map(showSshKey),
    DateCreate: formatDate(row.created),
    ImageID: row.image_id,
    BatchID: row.batch_id,
    IsProtected: row.is_protected === 1,
    Error: row.error === null ? null : showMachineError(JSON.parse(row.error) as StoredError),
    isBackupActive: row.is_backup_active === 1,
    BackupPeriod: row.backup_period,
    Condition: row.condition,
    Crashes: row.crashes,
    Labels: JSON.parse(row.labels) as Labels,
  };
}

/** Returns the entity tag of a server. */
export const serverTag = (row: ServerRow): string => `server-${row.id}-${row.version}`;

/** Returns the server without its password, for events and the audit. */
export const withoutSecrets = (server: Server): Server => ({ ...server, AdminPassword: "" });

/** Returns the group as responses show it. */
export const showBatch = (row: BatchRow, servers: readonly Server[]): Batch => ({
  ID: row.id,
  Policy: row.policy,
  State: row.state,
  Servers: [...servers],
  Errors: JSON.parse(row.errors) as Batch["Errors"],
});

/** The part of `Task` that an action shows. */
export interface ActionTask {
  readonly id: number;
  readonly name: string;
  readonly subject: { readonly id: number };
  readonly state: Action["State"];
  readonly start: number;
  readonly end: number | null;
  readonly progress: number;
  readonly steps: readonly {
    readonly name: string;
    readonly state: Action["Steps"][number]["State"];
    readonly start: number | null;
    readonly end: number | null;
    readonly detail: string;
  }[];
  readonly error: StoredError | null;
}

const showDate = (ms: number | null): string | null => (ms === null ? null : formatDate(ms));

/** Returns the action of a task; null: the task is not an action. A running deletion shows its error, because it is retried forever. */
export function showAction(task: ActionTask): Action | null {
  const type = actionTypeOf(task.name);
  if (type === null) return null;
  const { state, error } = task;
  const showsError = state === "Failed" || state === "Canceled" || type === "Delete";
  // Steps that the request completed are shown only after the action has started.
  const isWaiting = state === "Postponed";
  return {
    ID: task.id,
    Type: type,
    State: state,
    StartDate: formatDate(task.start),
    EndDate: showDate(task.end),
    ServerID: task.subject.id,
    Progress: isWaiting ? 0 : task.progress,
    Steps: task.steps.map((step) => ({
      Name: step.name,
      State: isWaiting ? "Pending" : step.state,
      StartDate: isWaiting ? null : showDate(step.start),
      EndDate: isWaiting ? null : showDate(step.end),
      Detail: isWaiting ? "" : step.detail,
    })),
    Error: showsError && error !== null ? showMachineError(error) : null,
  };
}
