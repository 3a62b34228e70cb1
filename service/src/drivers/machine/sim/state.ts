/**
 * Where simulated servers are kept: all of them on the first line and each change on one behind it, so that keeping one costs the same
 * however many there are, and a kill at any moment costs at most a line that was not finished.
 */
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

export interface SimulatedState<Server, Image> {
  readonly servers: Map<number, Server>;
  readonly images: Map<string, Image>;
  /** As they are now, also those that are gone. */
  keep(ids: readonly number[]): void;
  /** Everything, after a change of an image. */
  keepAll(): void;
}

/** Lines behind the first until they are made one. */
const mostLines = 2000;

/** `file` undefined: nothing is kept. */
export function openSimulatedState<Server extends { readonly id: number }, Image extends { readonly name: string }>(
  file: string | undefined,
): SimulatedState<Server, Image> {
  const servers = new Map<number, Server>();
  const images = new Map<string, Image>();
  /** The last that was written of each. */
  const written = new Map<number, string>();
  let lines = 0;

  function keepAll(): void {
    if (file === undefined) return;
    written.clear();
    for (const server of servers.values()) written.set(server.id, JSON.stringify(server));
    const whole = `{"servers":[${[...written.values()].join(",")}],"images":${JSON.stringify([...images.values()])}}\n`;
    writeFileSync(`${file}.part`, whole);
    renameSync(`${file}.part`, file);
    lines = 0;
  }

  if (file !== undefined && existsSync(file)) {
    const [first = "", ...changes] = readFileSync(file, "utf8").split("\n");
    const whole = JSON.parse(first) as { readonly servers: Server[]; readonly images: Image[] };
    for (const server of whole.servers) servers.set(server.id, server);
    for (const image of whole.images) images.set(image.name, image);
    // What stands behind the last end of a line was not finished.
    for (const line of changes.slice(0, -1)) {
      const change = JSON.parse(line) as { readonly id: number; readonly server: Server | null };
      if (change.server === null) servers.delete(change.id);
      else servers.set(change.id, change.server);
    }
  }
  try {
    keepAll();
  } catch (error) {
    // A full disk keeps nothing from its start: what was kept is read, and written anew later.
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }

  return {
    servers,
    images,
    keepAll,
    keep(ids) {
      if (file === undefined) return;
      for (const id of ids) {
        const text = JSON.stringify(servers.get(id) ?? null);
        if (text === (written.get(id) ?? "null")) continue;
        if (text === "null") written.delete(id);
        else written.set(id, text);
        appendFileSync(file, `{"id":${id},"server":${text}}\n`);
        if (++lines > mostLines + servers.size) keepAll();
      }
    },
  };
}
