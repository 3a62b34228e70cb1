/** Watches the files of the API's certificate, also behind symbolic links, and reads both when one has changed. */
import { readFileSync, statSync } from "node:fs";

/** Paths of the files, or their texts. */
export interface Pair {
  readonly certificate: string;
  readonly key: string;
}

/** Milliseconds between two checks of the files. A program that renews a certificate writes both within one. */
const period = 1000;

/** Returns both texts. */
export const readFiles = ({ certificate, key }: Pair): Pair => ({
  certificate: readFileSync(certificate, "utf8"),
  key: readFileSync(key, "utf8"),
});

/** Returns what changes with a file. */
const stampOf = (path: string): string => {
  const status = statSync(path, { throwIfNoEntry: false });
  return status === undefined ? "" : `${status.ino} ${status.mtimeMs} ${status.size}`;
};

/** Calls `take` with both texts after a change of a file, and `fail` with the reason if one cannot be read. */
export function watchFiles(paths: Pair, take: (texts: Pair) => void, fail: (reason: string) => void): void {
  const stamp = (): string => `${stampOf(paths.certificate)}\n${stampOf(paths.key)}`;
  let taken = stamp();
  let seen = taken;
  setInterval(() => {
    const now = stamp();
    // Read when nothing has changed for one period: the files may be written one after the other.
    const isQuiet = now === seen;
    seen = now;
    if (!isQuiet || now === taken) return;
    taken = now;
    try {
      take(readFiles(paths));
    } catch (error) {
      fail((error as Error).message);
    }
  }, period).unref();
}
