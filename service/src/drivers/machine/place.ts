/** Where an image is: with all others, or, of a backup, in a folder of its own that the operator has named. */
import { existsSync } from "node:fs";
import { join } from "node:path";

export interface BackupPlace {
  readonly folder: string;
  /** By the name of the image's folder. */
  readonly isBackup: (name: string) => boolean;
}

/** The folder of images that has the image of this name, or gets it. A backup from before the setting stays where it was made. */
export const placeFor =
  (images: string, backups: BackupPlace | null) =>
  (name: string): string =>
    backups === null || !backups.isBackup(name) || existsSync(join(images, name)) ? images : backups.folder;
