/**
 * What a customer wants done in a guest at its first boot: a script, `#cloud-config`, a MIME message of several, any of them
 * compressed. cloud-init takes one document, so ours and the customer's go in as parts of a MIME message (RFC 2046); Tiny Linux, which
 * has no cloud-init, takes a script or a `#cloud-config` that can become one, and anything else is refused for it.
 */
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { readCloudConfig } from "./cloudconfig.ts";

export interface UserData {
  readonly kind: "script" | "mime" | "config" | "other";
  /** Unpacked. */
  readonly content: Buffer;
}

/** Bytes, unpacked: what fits on the seed volume twice, as a script and in base64. */
const most = 500_000;

/**
 * Unpacks user data, which is text, bytes, or gzip as bytes or in base64. Null when there is nothing in it. Throws with a sentence for
 * the customer when it cannot be unpacked or is too large.
 */
export function readUserData(given: string | Uint8Array): UserData | null {
  // gzip begins with 1f 8b 08, which is H4sI in base64; text cannot be anything else that cloud-init knows.
  const isPackedText = typeof given === "string" && /^\s*H4sI[A-Za-z0-9+/\s]+=*\s*$/.test(given);
  const bytes = isPackedText ? Buffer.from(given, "base64") : Buffer.from(given);
  const content = bytes[0] === 0x1f && bytes[1] === 0x8b ? unpack(bytes) : bytes;
  if (content.length > most) throw new Error(`User data is larger than ${most} bytes.`);
  if (content.toString("latin1").trim() === "") return null;
  return { kind: classify(content), content };
}

function unpack(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: most });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
      throw new Error(`User data is larger than ${most} bytes.`, { cause: error });
    throw new Error("User data looks like gzip and cannot be unpacked.", { cause: error });
  }
}

function classify(content: Buffer): UserData["kind"] {
  const head = content.toString("latin1", 0, 4096);
  if (head.startsWith("#!")) return "script";
  // The same questions as cloud-init asks.
  if (head.toLowerCase().includes("mime-version:")) return "mime";
  return head.startsWith("#cloud-config") ? "config" : "other";
}

/** What Tiny Linux runs at its first boot; null when it would not do all of it. */
export function scriptOf({ kind, content }: UserData): string | Buffer | null {
  return kind === "script" ? content : kind === "config" ? readCloudConfig(content).script : null;
}

/** What Tiny Linux would not do of this, as the end of a sentence; null when it does everything. */
export function whyNotTiny(given: string | Uint8Array): string | null {
  let data: UserData | null;
  try {
    data = readUserData(given);
  } catch (error) {
    return (error as Error).message;
  }
  if (data === null || data.kind === "script") return null;
  if (data.kind === "mime") return "not a MIME message";
  if (data.kind === "other") return "not a text that begins otherwise";
  const { refused } = readCloudConfig(data.content);
  return refused === "" ? null : `not ${refused}`;
}

const lines = (content: Buffer): string => content.toString("base64").replaceAll(/.{76}(?=.)/g, "$&\n");

/** One message of both: the customer's first, so that ours can add to it, `config` being a `#cloud-config` text. */
export function joinUserData(data: UserData, config: string): Buffer {
  const boundary = `brume-${createHash("sha256").update(data.content).digest("hex").slice(0, 32)}`;
  // Its kind is told by its first line. The name sorts before `runcmd`, beside which cloud-init runs scripts in order of names.
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
