/**
 * Divides the data folder between the two processes. Root owns the folder and everything that the agent writes (`servers/`, `images/`).
 * The user of the control plane owns only `control/`, with the database, the key and the token:
 *
 *     <data>/                 root, 700
 *     <data>/control/         brume, 700: brume.db, brume.db-wal, key, token, tmp/
 *     <data>/brume.db, key, token, url     symbolic links into control/, for operators and scripts
 *
 * A folder of an earlier release is converted at the start. A crash leaves it in a state that the next start completes: until the link
 * `<data>/brume.db` exists, the files in `<data>` count, and those in `control/` are hard links to them.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { syncPathNow } from "../base/fsync.ts";
import type { Account } from "./account.ts";

/** Name of the control plane's folder. */
const controlName = "control";
const database = "brume.db";
const secrets = ["key", "token"] as const;
/** Address of the API, written at each start; the command line reads it. */
const address = "url";
/** Folder of the certificate that the service orders, with its account. */
export const orderedFolder = "acme";
/** Folder of the compiled code, in which each build has a folder. */
export const compiledFolder = "compiled";
/** The certificate in force, written at each start, for the command line on this host, which trusts it. */
export const certificateName = "certificate.pem";
/** Files that belong to the database and are removed with it. */
const companions = ["-wal", "-shm"] as const;
/** Files that root may have created in `control/`, for example a restored database, or with the service in one process. */
const known = [
  ...["", "-wal", "-shm", ".lock", ".holder"].map((end) => database + end),
  ...secrets,
  address,
  certificateName,
];

/** Returns the folder of the control plane. */
export const controlFolder = (dataFolder: string): string => join(dataFolder, controlName);

const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** Replaces `path` by a symbolic link in one step. */
function placeLink(path: string, target: string): void {
  const draft = `${path}.link`;
  rmSync(draft, { force: true });
  symlinkSync(target, draft);
  renameSync(draft, path);
}

/** Makes `control/NAME` the file that is in the data folder. Throws if both exist and differ. */
function adopt(dataFolder: string, name: string): boolean {
  const [old, own] = [join(dataFolder, name), join(controlFolder(dataFolder), name)];
  const [before, present] = [statOf(old), statOf(own)];
  if (before === undefined || before.isSymbolicLink()) return false;
  if (!before.isFile()) throw new Error(`${old} is not a file.`);
  if (present !== undefined && present.ino !== before.ino)
    throw new Error(
      `${old} and ${own} both exist. The service uses ${own}: to use the other file, remove ${own}${name === database ? ` with its files -wal and -shm` : ""}; otherwise remove ${old}. Then start again.`,
    );
  if (present === undefined) linkSync(old, own);
  return true;
}

/** Gives a file that root created to the user. A file with another owner, or with a second name outside, is not changed. */
function giveFile(path: string, { uid, gid }: Account): void {
  if (statOf(path)?.isFile() !== true) return;
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { uid: owner, nlink } = fstatSync(file);
    if (owner !== 0 || nlink !== 1) return;
    fchmodSync(file, 0o600);
    fchownSync(file, uid, gid);
  } finally {
    closeSync(file);
  }
}

/** Makes `control/acme` the folder of the ordered certificate, moves one of a service in one process there, and gives its files to the user. */
function adoptOrdered(dataFolder: string, account: Account): void {
  const [old, own] = [join(dataFolder, orderedFolder), join(controlFolder(dataFolder), orderedFolder)];
  const isFolder = (path: string): boolean => statOf(path)?.isDirectory() === true;
  if (isFolder(old) && isFolder(own) && readdirSync(own).length === 0) rmdirSync(own);
  if (isFolder(old) && statOf(own) === undefined) renameSync(old, own);
  if (statOf(own) === undefined) mkdirSync(own, { mode: 0o700 });
  if (statOf(old) === undefined) placeLink(old, join(controlName, orderedFolder));
  if (!isFolder(own)) return;
  const folder = openSync(own, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY);
  try {
    // By the open folder: its name may become a link.
    const path = `/proc/self/fd/${folder}`;
    for (const name of readdirSync(path)) giveFile(join(path, name), account);
    if (fstatSync(folder).uid === 0) fchownSync(folder, account.uid, account.gid);
  } finally {
    closeSync(folder);
  }
}

/** Returns whether the folder has the layout of an earlier release, or of a service in one process. */
export const needsConversion = (dataFolder: string): boolean => statOf(join(dataFolder, database))?.isFile() === true;

/** Creates or converts the data folder, as root and while no other process uses it. Repeating it changes nothing. */
export function prepareFolder(dataFolder: string, account: Account): void {
  const control = controlFolder(dataFolder);
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
  const owner = statOf(dataFolder);
  // The owner of a folder can replace everything in it, so root could be made to write elsewhere.
  if (owner?.uid !== 0)
    throw new Error(
      `${dataFolder} belongs to user ${owner?.uid ?? "?"}, but servers and networks need a folder of root. Run "chown root ${dataFolder}", or set BRUME_PROCESSES=1.`,
    );
  if ((owner.mode & 0o022) !== 0) chmodSync(dataFolder, 0o700);
  if (statOf(control) === undefined) mkdirSync(control, { mode: 0o700 });
  if (statOf(control)?.isDirectory() !== true) throw new Error(`${control} is not a folder.`);

  for (const name of secrets) if (adopt(dataFolder, name)) syncPathNow(control);
  if (adopt(dataFolder, database)) {
    // The files of an interrupted conversion may be older than those in the data folder.
    for (const end of companions) rmSync(join(control, database + end), { force: true });
    const log = join(dataFolder, `${database}-wal`);
    if (statOf(log) !== undefined) linkSync(log, join(control, `${database}-wal`));
    syncPathNow(control);
  }
  // An operator deletes the token to get a new one.
  const token = statOf(join(dataFolder, "token"));
  if (token === undefined) rmSync(join(control, "token"), { force: true });
  for (const name of [...secrets, address, certificateName, database])
    if (statOf(join(dataFolder, name))?.isSymbolicLink() !== true)
      placeLink(join(dataFolder, name), join(controlName, name));
  for (const end of [...companions, ".lock", ".holder"]) rmSync(join(dataFolder, database + end), { force: true });
  syncPathNow(dataFolder);

  for (const name of known) giveFile(join(control, name), account);
  adoptOrdered(dataFolder, account);
  const folder = openSync(control, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY);
  try {
    fchmodSync(folder, 0o700);
    fchownSync(folder, account.uid, account.gid);
  } finally {
    closeSync(folder);
  }
}
