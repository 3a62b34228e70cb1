/**
 * The file of simulated servers: all servers and images on the first line, then one line per change. So storing a change costs the same for
 * any number of servers, and a kill loses at most an unfinished line.
 */
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

/** Servers and images in memory, and their storage. */
export interface SimulatedState<Server, Image> {
  readonly servers: Map<number, Server>;
  readonly images: Map<string, Image>;
  /** Stores the current state of these servers, including removed ones. */
  save(ids: readonly number[]): void;
  /** Stores everything, after a change of an image. */
  saveAll(): void;
}

/** Number of changes after which the file is rewritten as one line. */
const maxChanges = 2000;

/** Renames `cards`, the name of `nics` in a run in files of earlier releases. Returns whether it was there. */
function renameCards(server: { power?: unknown }): boolean {
  const { power } = server;
  if (typeof power !== "object" || power === null || !("cards" in power)) return false;
  const { cards, ...others } = power;
  server.power = { nics: cards, ...others };
  return true;
}

/** Opens the file, which is created if it is missing. Without `file` nothing is stored. */
export function openSimulatedState<Server extends { readonly id: number }, Image extends { readonly name: string }>(
  file: string | undefined,
): SimulatedState<Server, Image> {
  const servers = new Map<number, Server>();
  const images = new Map<string, Image>();
  /** The last text of each server that was stored since the start. */
  const written = new Map<number, string>();
  let lines = 0;
  /** The last write failed, so the file may end with a part of a line, and changes are missing in it. */
  let isTorn = false;

  function saveAll(): void {
    if (file === undefined) return;
    isTorn = true;
    written.clear();
    for (const server of servers.values()) written.set(server.id, JSON.stringify(server));
    const snapshot = `{"servers":[${[...written.values()].join(",")}],"images":${JSON.stringify([...images.values()])}}\n`;
    writeFileSync(`${file}.part`, snapshot);
    renameSync(`${file}.part`, file);
    isTorn = false;
    lines = 0;
  }

  /** Reads the file. Returns whether changes can be appended: it has no unfinished one at its end, and the form of this release. */
  function load(): boolean {
    if (file === undefined || !existsSync(file)) return false;
    const [first = "", ...changes] = readFileSync(file, "utf8").split("\n");
    const snapshot = JSON.parse(first) as { readonly servers: Server[]; readonly images: Image[] };
    for (const server of snapshot.servers) servers.set(server.id, server);
    for (const image of snapshot.images) images.set(image.name, image);
    // The text after the last line break is an unfinished change.
    const unfinished = changes.pop();
    for (const line of changes) {
      const change = JSON.parse(line) as { readonly id: number; readonly server: Server | null };
      if (change.server === null) servers.delete(change.id);
      else servers.set(change.id, change.server);
    }
    lines = changes.length;
    const renamed = [...servers.values()].filter((server) => renameCards(server as { power?: unknown }));
    return unfinished === "" && renamed.length === 0;
  }

  try {
    // Rewriting costs more than reading.
    if (!load() || lines > maxChanges + servers.size) saveAll();
  } catch (error) {
    // The service also starts with a full disk: the state was read, and is written later.
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }

  return {
    servers,
    images,
    saveAll,
    save(ids) {
      if (file === undefined) return;
      if (isTorn) return saveAll();
      for (const id of ids) {
        const text = JSON.stringify(servers.get(id) ?? null);
        if (text === written.get(id)) continue;
        isTorn = true;
        appendFileSync(file, `{"id":${id},"server":${text}}\n`);
        isTorn = false;
        written.set(id, text);
        if (++lines > maxChanges + servers.size) saveAll();
      }
    },
  };
}
