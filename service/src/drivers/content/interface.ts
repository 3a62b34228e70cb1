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

/**
 * Receives files from clients, one by name at a time: a disk image, before it is checked and imported under the same name. A file grows only
 * at its end, so an upload can continue after any interruption.
 */
export interface Uploads {
  /**
   * Opens the file to write it from a position up to `bytes`, its final size. Ends the stream that is writing it. `from` is at most what is
   * stored; bytes after it are removed. Rejects if the disk has no space. The stream closes when its bytes are on disk.
   */
  openUpload(name: string, from: number, bytes: number): Promise<NodeJS.WritableStream & { destroy(): void }>;
  /**
   * Resolves to the bytes of the file that are on disk and survive a loss of power; 0 if it does not exist. Before, waits until the stream that
   * is writing it has written up to `least` bytes, or has closed.
   */
  syncUpload(name: string, least: number): Promise<number>;
  /** Removes the file and ends the stream that is writing it. Succeeds for an unknown name. */
  removeUpload(name: string): Promise<void>;
}
