/** Measures the free space of the data disk, for `/readyz`, `/metrics` and a log line before changes can no longer be stored. */
import { statfs } from "node:fs/promises";
import { Gauge, type Registry } from "prom-client";
import type { Log } from "../base/log.ts";

/** The data disk and its low-water mark. */
export interface DiskSettings {
  /** Folder on the disk. */
  readonly folder: string;
  /** Bytes. With fewer free bytes the disk counts as low. */
  readonly low: number;
}

/** State of the data disk; `free` and `size` are in bytes. */
export interface DiskState extends DiskSettings {
  readonly free: number;
  readonly size: number;
  readonly isLow: boolean;
}

/** Measures the data disk. */
export interface DiskWatch {
  /** Measures the disk and logs a change of `isLow`. Resolves to null if no disk is configured or it could never be measured. */
  measure(): Promise<DiskState | null>;
}

const show = (bytes: number): string =>
  bytes < 1e10 ? `${Math.floor(bytes / 1e6)} MB` : `${(Math.floor(bytes / 1e8) / 10).toFixed(1)} GB`;

/** Returns the state as a text for `/readyz`, which everybody may read, and for the log: without paths of the host. */
export function describeDisk(state: DiskState | null): string {
  if (state === null) return "not watched";
  const { free, size, low, isLow } = state;
  const text = `${show(free)} of ${show(size)} free for the data`;
  return isLow ? `low: ${text}, less than ${show(low)}. Free some space, or changes can no longer be stored.` : text;
}

/** Creates the measurement and its metrics. Without `folder` nothing is measured. */
export function createDiskWatch(options: Partial<DiskSettings> & { log: Log; registry: Registry }): DiskWatch {
  const { folder, low = 0, log, registry } = options;
  if (folder === undefined) return { measure: async () => null };
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
    async measure() {
      const found = await statfs(folder).catch(() => null);
      if (found === null) return last;
      const free = found.bavail * found.bsize;
      // Hysteresis: the disk counts as low until a tenth more is free.
      const isLow = free < (last?.isLow === true ? low * 1.1 : low);
      const state = { folder, low, free, size: found.blocks * found.bsize, isLow };
      if (isLow !== (last?.isLow ?? false))
        log(
          isLow ? "warn" : "info",
          `The disk of ${folder} is ${isLow ? "" : "no longer low: "}${describeDisk(state)}`,
        );
      last = state;
      return state;
    },
  };
}
