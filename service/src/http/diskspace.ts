/** How full the disk of the data is: for `/readyz`, `/metrics` and one line in the log, before changes can no longer be stored. */
import { statfs } from "node:fs/promises";
import { Gauge, type Registry } from "prom-client";
import type { Log } from "../base/log.ts";
import { StorageError } from "../store/db.ts";

export interface DiskSettings {
  readonly folder: string;
  /** Bytes: with fewer free the disk counts as low. */
  readonly low: number;
}

export interface DiskState extends DiskSettings {
  readonly free: number;
  readonly size: number;
  readonly isLow: boolean;
}

export interface DiskWatch {
  /** Null: it is not watched, or does not say. */
  look(): Promise<DiskState | null>;
}

const megabytes = (bytes: number): string => `${Math.floor(bytes / 1e6)} MB`;

export function describeDisk(state: DiskState | null): string {
  if (state === null) return "not watched";
  const { folder, free, size, low, isLow } = state;
  const text = `${megabytes(free)} of ${megabytes(size)} free for ${folder}`;
  return isLow ? `low: ${text}, less than ${megabytes(low)}. Make room before changes can no longer be stored.` : text;
}

export function createDiskWatch(options: Partial<DiskSettings> & { log: Log; registry: Registry }): DiskWatch {
  const { folder, low = 0, log, registry } = options;
  if (folder === undefined) return { look: async () => null };
  let last: DiskState | null = null;
  const gauge = (name: string, help: string, read: (state: DiskState) => number): void => {
    const collect = function (this: Gauge): void {
      if (last !== null) this.set(read(last));
    };
    registry.registerMetric(new Gauge({ name, help, registers: [], collect }));
  };
  gauge("brume_disk_free_bytes", "Bytes free on the disk of the data.", ({ free }) => free);
  gauge("brume_disk_size_bytes", "Size of the disk of the data.", ({ size }) => size);
  gauge("brume_disk_low", "1: fewer bytes are free than the low-water mark.", ({ isLow }) => Number(isLow));

  return {
    async look() {
      const found = await statfs(folder).catch(() => null);
      if (found === null) return last;
      const free = found.bavail * found.bsize;
      // It counts as low until there is a tenth more, so that it does not come and go.
      const isLow = free < (last?.isLow === true ? low * 1.1 : low);
      const state = { folder, low, free, size: found.blocks * found.bsize, isLow };
      if (isLow !== (last?.isLow ?? false))
        log(isLow ? "warn" : "info", `The disk is ${isLow ? "" : "no longer "}${describeDisk(state)}`);
      last = state;
      return state;
    },
  };
}

/** The store says itself, once, that it cannot work: what fails because of it is worth no line of its own. */
export const withoutStorage =
  (log: Log): Log =>
  (level, message, detail) =>
    log(isStorageError(detail) ? "debug" : level, message, detail);

const isStorageError = (detail: object | undefined): boolean =>
  detail !== undefined && "error" in detail && detail.error instanceof StorageError;
