/** Reads the certificate of the API. The supervisor does this as root, since the user of the control plane may not read the key. */
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Config } from "../config.ts";

/** Throws the error again with the name of its setting in front. */
const throwNaming = (setting: string) => (error: unknown) => {
  throw new Error(`${setting}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
};

/** Reads both PEM files and checks that certificate and key match. Throws with the name of the setting. */
export async function readTls(files: NonNullable<Config["tls"]>): Promise<NonNullable<Config["tls"]>> {
  const certificate = await readFile(files.certificate, "utf8").catch(throwNaming("BRUME_TLS_CERT"));
  const key = await readFile(files.key, "utf8").catch(throwNaming("BRUME_TLS_KEY"));
  try {
    createSecureContext({ cert: certificate, key });
  } catch (error) {
    throwNaming("BRUME_TLS_CERT and BRUME_TLS_KEY")(error);
  }
  return { certificate, key };
}
