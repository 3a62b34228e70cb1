/** Passwords of administrators: 16 letters and digits, all equally likely (95 bits), and their hashes. */

import type { Sealer } from "../../base/secret.ts";
import { fewestRounds, hashPassword, renderSalt } from "../../drivers/machine/seed/password.ts";
import type { ServerRow } from "../table.ts";
import { saltOf } from "./machinespec.ts";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 16;
/** Larger bytes are rejected, because they would make the first letters more likely. */
const even = 256 - (256 % letters.length);

/** Returns a new password. `random` returns `bytes` random bytes. */
export function createPassword(random: (bytes: number) => Uint8Array): string {
  let password = "";
  while (password.length < length)
    for (const byte of random(length))
      if (byte < even && password.length < length) password += letters[byte % letters.length];
  return password;
}

/** Most hashes in the cache. */
const mostHashes = 1000;

/** Returns a function that hashes the password of a row in the format of /etc/shadow. Equal rows give equal hashes; each takes 1 ms and is cached. */
export function createHasher(sealer: Sealer): (server: ServerRow) => string {
  const known = new Map<string, string>();
  return (server) => {
    const key = `${server.id} ${server.disk_version} ${Buffer.from(server.admin_password).toString("base64")}`;
    const cached = known.get(key);
    if (cached !== undefined) return cached;
    if (known.size >= mostHashes) known.clear();
    // The password is random with 95 bits, so more rounds would add no security.
    const hash = hashPassword(sealer.open(server.admin_password), renderSalt(saltOf(server)), fewestRounds);
    known.set(key, hash);
    return hash;
  };
}
