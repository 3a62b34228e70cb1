/**
 * User data, which a user supplies for the first boot of a guest: a script, `#cloud-config`, or a MIME message of several, each optionally
 * compressed. cloud-init accepts one document, so Brume's config and the user's are parts of one MIME message (RFC 2046). Tiny Linux has no
 * cloud-init: it accepts a script, or a `#cloud-config` that can be translated to one; other user data is refused for it.
 */
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { readCloudConfig } from "./cloudconfig.ts";

/** Parsed user data. */
export interface UserData {
  readonly kind: "script" | "mime" | "config" | "other";
  /** Uncompressed. */
  readonly content: Buffer;
}

/** Maximum uncompressed bytes: must fit on the seed volume twice, as a script and in base64. */
const maxBytes = 500_000;

/**
 * Parses user data: text, bytes, or gzip as bytes or in base64. Returns null if it is empty. Throws an error with a sentence for the user
 * if it is too large or cannot be decompressed.
 */
export function readUserData(given: string | Uint8Array): UserData | null {
  // gzip begins with 1f 8b 08, which is H4sI in base64; no text format of cloud-init begins like that.
  const isGzipText = typeof given === "string" && /^\s*H4sI[A-Za-z0-9+/\s]+=*\s*$/.test(given);
  const bytes = isGzipText ? Buffer.from(given, "base64") : Buffer.from(given);
  const content = bytes[0] === 0x1f && bytes[1] === 0x8b ? unpack(bytes) : bytes;
  if (content.length > maxBytes) throw new Error(`User data is larger than ${maxBytes} bytes.`);
  if (content.toString("latin1").trim() === "") return null;
  return { kind: classify(content), content };
}

function unpack(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
      throw new Error(`User data is larger than ${maxBytes} bytes.`, { cause: error });
    throw new Error("User data starts like gzip but cannot be decompressed.", { cause: error });
  }
}

function classify(content: Buffer): UserData["kind"] {
  const head = content.toString("latin1", 0, 4096);
  if (head.startsWith("#!")) return "script";
  // The same checks as in cloud-init.
  if (head.toLowerCase().includes("mime-version:")) return "mime";
  return head.startsWith("#cloud-config") ? "config" : "other";
}

/** Returns the script that Tiny Linux runs at its first boot; null if it does not support all of the user data. */
export function scriptOf({ kind, content }: UserData): string | Buffer | null {
  return kind === "script" ? content : kind === "config" ? readCloudConfig(content).script : null;
}

/** Returns the sentence that `readUserData` throws for this user data; null if it can be read. */
export function whyUnreadable(given: string | Uint8Array): string | null {
  try {
    readUserData(given);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns a sentence about the parts of this user data that Tiny Linux does not support; null if it supports everything. */
export function whyNotTiny(given: string | Uint8Array): string | null {
  let data: UserData | null;
  try {
    data = readUserData(given);
  } catch (error) {
    return (error as Error).message;
  }
  if (data === null || data.kind === "script") return null;
  if (data.kind === "mime") return "A MIME message is not supported.";
  if (data.kind === "other") return "This kind of text is not supported.";
  const { refused } = readCloudConfig(data.content);
  return refused === "" ? null : `Not supported: ${refused}.`;
}

const lines = (content: Buffer): string => content.toString("base64").replaceAll(/.{76}(?=.)/g, "$&\n");

/**
 * Returns one MIME message of the user's data and `config`, a `#cloud-config` text. The user's part is first, so that `config` can extend
 * it.
 */
export function joinUserData(data: UserData, config: string): Buffer {
  const boundary = `brume-${createHash("sha256").update(data.content).digest("hex").slice(0, 32)}`;
  // cloud-init detects the type by the first line. It runs scripts in order of names, and this name sorts before `runcmd`.
  const wrapped = `Content-Type: text/plain; charset="utf-8"
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="part-001"

${lines(data.content)}`;
  return Buffer.concat([
    Buffer.from(`MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="${boundary}"\n\n--${boundary}\n`),
    data.kind === "mime" ? data.content : Buffer.from(wrapped),
    Buffer.from(`
--${boundary}
Content-Type: text/cloud-config; charset="utf-8"
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="brume.cfg"

${lines(Buffer.from(config))}
--${boundary}--
`),
  ]);
}
