/** The system user of the control plane, which `scripts/setup` creates. Reads the files of the host, as the C library does without a server. */
import { readFileSync } from "node:fs";

/** Numeric ids of the user and its group. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Name of the user. */
export const accountName = "brume";

/** Returns the user's ids, null if the text of /etc/passwd does not contain it. Root is never the user. */
export function findAccount(passwd: string): Account | null {
  for (const line of passwd.split("\n")) {
    const [name, , uid = "", gid = ""] = line.split(":");
    if (name !== accountName || !/^[1-9]\d*$/.test(uid) || !/^[1-9]\d*$/.test(gid)) continue;
    return { uid: Number(uid), gid: Number(gid) };
  }
  return null;
}

/** Returns the user of this host, null if it does not exist. */
export const readAccount = (): Account | null => findAccount(readFileSync("/etc/passwd", "utf8"));
