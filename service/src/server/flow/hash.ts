/** Hashes of administrators' passwords: a millisecond of the processor each, and the same ones are wanted again and again. */
import type { Sealer } from "../../base/secret.ts";
import { fewestRounds, hashPassword, renderSalt } from "../../drivers/machine/password.ts";
import type { ServerRow } from "../table.ts";
import { seasoningOf } from "../wish.ts";

/** Remembered at once. */
const most = 1000;

/** As in /etc/shadow; the same row gives the same hash. */
export function createHasher(sealer: Sealer): (server: ServerRow) => string {
  const known = new Map<string, string>();
  return (server) => {
    const key = `${server.id} ${server.disk_version} ${Buffer.from(server.admin_password).toString("base64")}`;
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    if (known.size >= most) known.clear();
    // Drawn by lot from 62^16: more rounds would guard nothing.
    const hash = hashPassword(sealer.open(server.admin_password), renderSalt(seasoningOf(server)), fewestRounds);
    known.set(key, hash);
    return hash;
  };
}
