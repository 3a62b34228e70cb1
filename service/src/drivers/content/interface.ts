/**
 * The driver interface for the contents of images and of disk copies, to move them to another host: a list of files with checksums, and
 * each file as a byte stream from any position. Contents never change, so a transfer can continue after any interruption.
 */

/** An image by its name, or the copy of a server's disks that `holdDisks` has made. */
export type ContentOf = { readonly image: string } | { readonly copy: number };

/** One entry of the list, in the order of the transfer. */
export interface ContentFile {
  /** Position in the list, from 0. */
  readonly number: number;
  /** Name inside the content: `image.json`, `disk-1/0.qcow2`. */
  readonly name: string;
  readonly bytes: number;
  /** 64 hexadecimal digits in lower case. */
  readonly sha256: string;
}

/** Reads the images and disk copies of one host. */
export interface Contents {
  /** Lists the files. Rejects if the image or copy does not exist. */
  listFiles(of: ContentOf): Promise<readonly ContentFile[]>;
  /** Opens a file of the list at a position in bytes. Rejects if it does not exist. */
  openFile(of: ContentOf, file: number, from: number): Promise<NodeJS.ReadableStream & { destroy(): void }>;
  /**
   * Begins or continues to receive a content with these files, as another host lists them. Resolves to the bytes of each file that are
   * stored already: all, if the content is complete here. Rejects if this host has another content of this name, or no space.
   */
  expectFiles(of: ContentOf, files: readonly ContentFile[]): Promise<readonly number[]>;
  /** Opens a file of an expected content to write it from a position, which is at most what is stored; bytes after it are removed. */
  writeFile(of: ContentOf, file: number, from: number): Promise<NodeJS.WritableStream & { destroy(): void }>;
  /** Verifies the checksums and gives the content its name. Rejects if a file is incomplete; removes one with a wrong checksum. */
  completeFiles(of: ContentOf): Promise<void>;
}
