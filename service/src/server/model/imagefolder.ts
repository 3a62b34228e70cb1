/** Names of the folders of images that projects make. The prefix of a name identifies the kind of its image without the database. */

/** Prefixes of folders that do not hold operator images. Backups may be on another file system. */
export const prefixes = { Client: "own-", Backup: "backup-" } as const;

/** True for the folder of an image that was created or imported by a project, false for one of the operator. */
export const isOwnFolder = (folder: string): boolean =>
  Object.values(prefixes).some((prefix) => folder.startsWith(prefix));

/** True for the folder of a backup. */
export const isBackupFolder = (folder: string): boolean => folder.startsWith(prefixes.Backup);
