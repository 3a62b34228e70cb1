/**
 * Raises the numbers of rows that are older than their VMs, as after a restore of the database alone, during which VMs and disks have
 * changed. A VM with a boot number that was used already would not be started anew, the end of its guest would be ignored, and a disk that
 * was replaced by a rebuild would be missing.
 */
import type { Log } from "../base/log.ts";
import { queue } from "../engine/task.ts";
import { rest, type Store, type Tx } from "../store/db.ts";
import { rebuildName } from "./flow/effective.ts";
import type { MachineState } from "./machinestatus.ts";
import { uuidOf } from "./model/machinespec.ts";
import { findAnyServer, type ServerRow, statesPerPage, updateServer } from "./table.ts";

/** Columns that are compared with the status of the VM. */
type Numbers = Pick<ServerRow, "boot" | "disk_version">;

/** Returns the numbers of the row, or those of the host that are higher. The disk is replaced only if the right one is certain. */
export function numbersOf(
  { id, created, boot, disk_version }: Pick<ServerRow, "id" | "created"> & Numbers,
  status: MachineState,
): Numbers {
  const { disks, label, version } = status;
  const present = version !== 0 ? version : disks.length === 1 ? (disks[0]?.version ?? 0) : 0;
  // Both disks exist during a rebuild. Only in a restored database the VM has the higher boot number too.
  const isOther = status.boot > boot || !disks.some((one) => one.version === disk_version);
  const isReplaced = present > disk_version && isOther && label?.uuid === uuidOf({ id, created });
  return { boot: Math.max(boot, status.boot), disk_version: isReplaced ? present : disk_version };
}

/** True if the host has a number that the row must take. */
export function isBehind(row: Parameters<typeof numbersOf>[0], status: MachineState): boolean {
  // Almost all rows: the host has no higher number.
  if (status.boot <= row.boot && (status.disks.at(-1)?.version ?? 0) <= row.disk_version) return false;
  const { boot, disk_version } = numbersOf(row, status);
  return boot !== row.boot || disk_version !== row.disk_version;
}

/** Raises the numbers in the row of one server, unless a task in its queue may depend on them. */
async function raise(tx: Tx, log: Log, status: MachineState): Promise<void> {
  const row = await findAnyServer(tx, status.id);
  if (row === undefined) return;
  const tasks = await queue(tx, { kind: "server", id: row.id });
  const numbers = numbersOf(row, status);
  const change = {
    // A step may have started the VM and not stored its number yet.
    boot: tasks.length > 0 ? row.boot : numbers.boot,
    disk_version: tasks.some(({ name }) => name === rebuildName) ? row.disk_version : numbers.disk_version,
  };
  if (change.boot === row.boot && change.disk_version === row.disk_version) return;
  await updateServer(tx, row.id, change);
  log("info", "The VM of a server is newer than the database, as after a restore.", { server: row.id, ...change });
}

/** Raises the numbers in the rows of these servers, sorted by id. A row whose queue is not empty may keep its numbers until the next call. */
export async function raiseNumbers(store: Store, log: Log, seen: readonly MachineState[]): Promise<void> {
  for (let from = 0; from < seen.length; from += statesPerPage)
    await store.write(async (tx) => {
      for (const status of seen.slice(from, from + statesPerPage)) {
        await raise(tx, log, status);
        await rest(tx);
      }
    });
}
