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

/** Returns what changes with a file, its owner or its permissions. Of a file that cannot be reached, this is the code of the error. */
const stampOfFile = (path: string): string => {
  try {
    const { ino, ctimeMs, size } = statSync(path);
    return `${ino} ${ctimeMs} ${size}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "";
  }
};

/** Returns what changes with the files. Never throws. */
export const stampOf = ({ certificate, key }: Pair): string => `${stampOfFile(certificate)}\n${stampOfFile(key)}`;

/**
 * Calls `take` with both texts after a change of a file, and `fail` with the reason if one cannot be read. `stamp`: of the files that are in
 * use, taken before they were read.
 */
export function watchFiles(
  paths: Pair,
  stamp: string,
  take: (texts: Pair) => void,
  fail: (reason: string) => void,
): void {
  let taken = stamp;
  let seen = stamp;
  setInterval(() => {
    const now = stampOf(paths);
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
