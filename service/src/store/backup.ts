/**
 * Copies a SQLite database while the service uses it: `VACUUM INTO` reads a snapshot in a thread of its own. SQLite's backup interface
 * would restart at every commit of another connection. The copy is checked before it gets its name. For PostgreSQL use `pg_dump`.
 */
import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { PlaceOptions } from "./files.ts";
import { placeFile } from "./files.ts";
import { connect } from "./sqlite.ts";

/** Bytes written so far, and the estimated total. */
export interface BackupProgress {
  readonly stage: "copy" | "check";
  readonly bytes: number;
  readonly total: number;
}

interface Job {
  readonly source: string;
  readonly draft: string;
}

const role = "brume backup";

/**
 * Copies the database in `source` to `target` and resolves to the size in bytes. Rejects and leaves `target` unchanged when `target`
 * exists without `replace`, the disk is full, or the copy is damaged.
 */
export function backup(
  source: string,
  target: string,
  { onProgress = () => {}, ...placing }: PlaceOptions & { onProgress?: (progress: BackupProgress) => void } = {},
): Promise<number> {
  const total = statSync(source).size;
  return placeFile(target, placing, async (draft) => {
    const worker = new Worker(new URL("./backup.ts", import.meta.url), {
      name: role,
      workerData: { role, source, draft },
    });
    let stage: BackupProgress["stage"] = "copy";
    const report = async (): Promise<void> => {
      const bytes = (await stat(draft)).size;
      onProgress({ stage, bytes, total: Math.max(bytes, total) });
    };
    const timer = setInterval(() => void report().catch(() => {}), 500);
    try {
      await new Promise<void>((resolve, reject) => {
        worker.on("message", () => {
          stage = "check";
        });
        worker.once("error", reject);
        worker.once("exit", (code) => (code === 0 ? resolve() : reject(new Error("the backup thread ended early"))));
      });
    } finally {
      clearInterval(timer);
    }
    await report();
    return (await stat(draft)).size;
  });
}

function copy({ source, draft }: Job): void {
  const database = connect(source, { readOnly: true });
  try {
    database.run("VACUUM INTO ?", [draft]);
  } finally {
    database.close();
  }
  parentPort?.postMessage("check");
  const result = connect(draft, { readOnly: true });
  try {
    const found = result.all("PRAGMA integrity_check", []).map((row) => String(row["integrity_check"]));
    if (found.join() !== "ok") throw new Error(`the copy is damaged, and ${source} may be too: ${found.join("; ")}`);
  } finally {
    result.close();
  }
}

if (!isMainThread && (workerData as { role?: unknown } | null)?.role === role) copy(workerData as Job);
