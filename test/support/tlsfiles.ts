/** Certificate files for tests of the API's own certificate. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KeyPair } from "../../service/src/drivers/authority/interface.ts";
import { createAuthority } from "../../service/src/drivers/authority/thread.ts";

/** Creates pairs that are valid for different numbers of days. */
export const createPairs = (name: string, count: number): Promise<KeyPair[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => createAuthority().selfSign([name], index + 1)));

/** Replaces the files `cert.pem` and `key.pem`, one after the other, and returns their settings. */
export function writePair(folder: string, { certificate, key }: KeyPair) {
  for (const [name, text] of [
    ["cert.pem", certificate],
    ["key.pem", key],
  ] as const) {
    writeFileSync(join(folder, `${name}.new`), text, { mode: 0o600 });
    renameSync(join(folder, `${name}.new`), join(folder, name));
  }
  return { BRUME_TLS_CERT: join(folder, "cert.pem"), BRUME_TLS_KEY: join(folder, "key.pem") };
}
