/** Passwords of administrators: 16 letters and digits, each as likely as any other (95 bits). */

import type { Sealer } from "../../base/secret.ts";
import { fewestRounds, hashPassword, renderSalt } from "../../drivers/machine/seed/password.ts";
import type { ServerRow } from "../table.ts";
import { saltOf } from "./machinespec.ts";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 16;
/** Bytes from here on would make the first letters likelier. */
const even = 256 - (256 % letters.length);

/** `random` gives so many random bytes. */
export function createPassword(random: (bytes: number) => Uint8Array): string {
  let password = "";
  while (password.length < length)
    for (const byte of random(length))
      if (byte < even && password.length < length) password += letters[byte % letters.length];
  return password;
}

/** Hashes that are remembered at once. */
const most = 1000;

/** Hashes as in /etc/shadow; the same row gives the same hash. Each costs a millisecond of the processor and is used again, so they are remembered. */
export function createHasher(sealer: Sealer): (server: ServerRow) => string {
  const known = new Map<string, string>();
  return (server) => {
    const key = `${server.id} ${server.disk_version} ${Buffer.from(server.admin_password).toString("base64")}`;
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    if (known.size >= most) known.clear();
    // Drawn by lot from 62^16: more rounds would guard nothing.
    const hash = hashPassword(sealer.open(server.admin_password), renderSalt(saltOf(server)), fewestRounds);
    known.set(key, hash);
    return hash;
  };
}
