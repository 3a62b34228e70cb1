/**
 * Checks that the key of this start is the one that sealed the secrets in the database. The database contains a known text sealed with the
 * key (the probe). For an older database without a probe, any other sealed value is used.
 */
import { join } from "node:path";
import type { Log } from "../base/log.ts";
import { createSealer, type Sealer } from "../base/secret.ts";
import { ensureSecretFile, readSecret } from "../base/secretfile.ts";
import type { Reader, Store } from "../store/db.ts";
import { lock, StorageError } from "../store/db.ts";

const text = "the key of this database";

/** Returns a sealed value, preferably the probe; undefined: there is none. */
async function findSealed(db: Reader): Promise<Uint8Array | undefined> {
  const probe = await db.selectFrom("probe").select("sealed").limit(1).executeTakeFirst();
  if (probe !== undefined) return probe.sealed;
  const server = await db.selectFrom("server").select("admin_password as sealed").limit(1).executeTakeFirst();
  if (server !== undefined) return server.sealed;
  const network = await db
    .selectFrom("network")
    .select("wireguard as sealed")
    .where("wireguard", "is not", null)
    .limit(1)
    .executeTakeFirst();
  if (network?.sealed !== undefined && network.sealed !== null) return network.sealed;
  const tunnel = await db
    .selectFrom("tunnel")
    .select("shared_key as sealed")
    .where("shared_key", "is not", null)
    .limit(1)
    .executeTakeFirst();
  if (tunnel?.sealed !== undefined && tunnel.sealed !== null) return tunnel.sealed;
  return (await db.selectFrom("idempotency").select("sealed").limit(1).executeTakeFirst())?.sealed;
}

/** Returns whether the database contains sealed values. An unreadable database may. */
const hasSecrets = async (store: Store): Promise<boolean> => {
  try {
    return (await findSealed(store.read)) !== undefined;
  } catch (error) {
    if (error instanceof StorageError) return true;
    throw error;
  }
};

/** Resolves to false for a wrong key. Adds a missing probe. A full or damaged disk is logged and does not prevent the start. */
async function checkKey(store: Store, sealer: Sealer, log: Log): Promise<boolean> {
  try {
    const sealed = await findSealed(store.read);
    if (sealed !== undefined && !opens(sealer, sealed)) return false;
    if ((await store.read.selectFrom("probe").select("id").executeTakeFirst()) !== undefined) return true;
    await store.write(async (tx) => {
      await lock(tx, "probe");
      const probe = await tx.selectFrom("probe").select("id").executeTakeFirst();
      if (probe === undefined)
        await tx
          .insertInto("probe")
          .values({ sealed: sealer.seal(text) })
          .execute();
    });
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    log("warn", `The key could not be checked against the database: ${error.message}`);
  }
  return true;
}

/**
 * Creates the sealer with the given key (hex), or with the key file in the data folder, which is created for a new database. Throws if the
 * key is missing or wrong; then no file is created.
 */
export async function openSealer(store: Store, given: string | null, folder: string, log: Log): Promise<Sealer> {
  const file = join(folder, "key");
  const known = given ?? readSecret(folder, "key");
  if (known === null && (await hasSecrets(store)))
    throw new Error(
      `${file} is missing, and the database holds secrets that are sealed with it: put the copy of this file back, or set BRUME_KEY to what was in it. Without it they cannot be opened; with a new key every server would fail.`,
    );
  const sealer = createSealer(Buffer.from(known ?? ensureSecretFile(folder, "key").value, "hex"));
  if (await checkKey(store, sealer, log)) return sealer;
  throw new Error(
    `${given === null ? file : "BRUME_KEY"} is not the key that sealed the secrets of this database: put back the key that belongs to it, or the database that belongs to this key.`,
  );
}

function opens(sealer: Sealer, sealed: Uint8Array): boolean {
  try {
    sealer.open(sealed);
    return true;
  } catch {
    return false;
  }
}
