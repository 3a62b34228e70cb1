/**
 * Parses OpenSSH public keys: the line `type base64 [comment]` of `ssh-keygen(1)`, or its base64 part alone. Keys are copied into guests
 * unchanged, so the encoded data is validated as strictly as OpenSSH does (RFC 4253 section 6.6, RFC 5656 section 3.1, RFC 8709, OpenSSH's
 * `PROTOCOL.u2f`): a key that OpenSSH would ignore at login is rejected.
 */
import { createPublicKey, hash } from "node:crypto";
import { type SshKeyType, sshKeyTypes } from "@brume/api/catalog.ts";

/** One line of OpenSSH's `authorized_keys`, without options. */
export interface PublicKey {
  readonly type: SshKeyType;
  /** With padding, as OpenSSH writes it. */
  readonly base64: string;
  readonly comment: string;
  /** `SHA256:…`, as `ssh-keygen -l` prints it. */
  readonly fingerprint: string;
}

/** Why a text is no valid key; `reason` completes a sentence that begins with the name of the field. */
export interface PublicKeyError {
  readonly reason: string;
}

const leastRsaBits = 2048;
/** Maximum of OpenSSH. */
const mostRsaBits = 16_384;

/** Reader of the fields of a key, each with its length in front (RFC 4251 section 5). */
interface Cursor {
  /** Returns the next field; null if the bytes end before it does. */
  next(): Buffer | null;
  readonly atEnd: boolean;
}

function read(bytes: Buffer): Cursor {
  let at = 0;
  return {
    next() {
      if (at + 4 > bytes.length) return null;
      const length = bytes.readUInt32BE(at);
      if (at + 4 + length > bytes.length) return null;
      at += 4 + length;
      return bytes.subarray(at - length, at);
    },
    get atEnd() {
      return at === bytes.length;
    },
  };
}

/** Returns a positive, minimally encoded `mpint`; null for other fields. */
function toNumber(field: Buffer | null): Buffer | null {
  const [first, second] = field ?? [];
  if (field === null || first === undefined || first >= 0x80) return null;
  if (first > 0) return field;
  return second !== undefined && second >= 0x80 ? field.subarray(1) : null;
}

const bitsOf = (number: Buffer): number => number.length * 8 - Math.clz32(number[0] ?? 0) + 24;
const isOdd = (number: Buffer): boolean => ((number.at(-1) ?? 0) & 1) === 1;

function checkRsa(cursor: Cursor): string | null {
  const exponent = toNumber(cursor.next());
  const modulus = toNumber(cursor.next());
  if (exponent === null || modulus === null || !isOdd(exponent) || !isOdd(modulus)) return broken;
  if (bitsOf(exponent) < 2) return broken;
  const bits = bitsOf(modulus);
  if (bits < leastRsaBits || bits > mostRsaBits)
    return `must be an RSA key of ${leastRsaBits} to ${mostRsaBits} bits, not ${bits}`;
  return null;
}

const curves = {
  nistp256: { jwk: "P-256", bytes: 32 },
  nistp384: { jwk: "P-384", bytes: 48 },
  nistp521: { jwk: "P-521", bytes: 66 },
} as const;

/** Checks the curve name and that the field is an uncompressed point on the curve. */
function checkCurve(cursor: Cursor, name: keyof typeof curves): string | null {
  const { jwk, bytes } = curves[name];
  const curve = cursor.next()?.toString("latin1");
  const point = cursor.next();
  if (curve !== name || point?.length !== 1 + 2 * bytes || point[0] !== 4) return broken;
  const x = point.subarray(1, 1 + bytes).toString("base64url");
  const y = point.subarray(1 + bytes).toString("base64url");
  try {
    createPublicKey({ key: { kty: "EC", crv: jwk, x, y }, format: "jwk" });
    return null;
  } catch {
    return `must be a key whose point lies on the curve ${name}`;
  }
}

/** Accepts any 32 bytes, as OpenSSH does. */
const checkEd25519 = (cursor: Cursor): string | null => (cursor.next()?.length === 32 ? null : broken);

/** Checks the application of a hardware key, usually `ssh:`. */
function checkApplication(cursor: Cursor): string | null {
  const application = cursor.next();
  return application !== null && application.length > 0 ? null : broken;
}

const broken = "must be a complete OpenSSH public key; the encoded data of this one is broken";

const insides: Readonly<Record<SshKeyType, (cursor: Cursor) => string | null>> = {
  "ssh-ed25519": checkEd25519,
  "ssh-rsa": checkRsa,
  "ecdsa-sha2-nistp256": (cursor) => checkCurve(cursor, "nistp256"),
  "ecdsa-sha2-nistp384": (cursor) => checkCurve(cursor, "nistp384"),
  "ecdsa-sha2-nistp521": (cursor) => checkCurve(cursor, "nistp521"),
  "sk-ssh-ed25519@openssh.com": (cursor) => checkEd25519(cursor) ?? checkApplication(cursor),
  "sk-ecdsa-sha2-nistp256@openssh.com": (cursor) => checkCurve(cursor, "nistp256") ?? checkApplication(cursor),
};

const isType = (text: string): text is SshKeyType => (sshKeyTypes as readonly string[]).includes(text);
/** Quotes the beginning of a text only, since it may be a private key. */
const begin = (text: string): string => JSON.stringify(text.length > 20 ? `${text.slice(0, 20)}…` : text);
const supported = (found: string) => `must be a key of type ${sshKeyTypes.join(", ")}, not ${begin(found)}`;

/** Parses one key. Never throws. */
export function readPublicKey(text: string): PublicKey | PublicKeyError {
  if (/-----BEGIN|PRIVATE KEY/.test(text)) return { reason: "must be a public key in OpenSSH form, not a PEM file" };
  if (/[\p{Cc}\u2028\u2029]/u.test(text.replaceAll("\t", " ")))
    return { reason: "must be one line without control characters" };
  const [first = "", second = "", rest = ""] = split(text);
  const isAlone = first.startsWith("AAAA");
  const [stated, base64, comment] = isAlone ? [null, first, `${second} ${rest}`.trim()] : [first, second, rest];
  if (stated !== null && !isType(stated)) {
    // If options precede the key, it begins later in the line.
    if (/(?:^|\s)AAAA/.test(`${second} ${rest}`) && !/^(?:ssh|ecdsa|sk)-/.test(stated))
      return { reason: "must begin with the type of the key, no options in front" };
    return { reason: supported(stated) };
  }
  const bytes = Buffer.from(base64, "base64");
  const written = bytes.toString("base64");
  // Node's decoder skips invalid characters: the input was valid base64 only if encoding returns the same text.
  if (bytes.length === 0 || written.replace(/=+$/, "") !== base64.replace(/=+$/, ""))
    return { reason: `must be an OpenSSH line: type base64 [comment], or the base64 part alone, not ${begin(text)}` };
  const cursor = read(bytes);
  const type = cursor.next()?.toString("latin1") ?? "";
  if (!isType(type)) return { reason: stated === null ? supported(type) : broken };
  if (stated !== null && stated !== type)
    return { reason: `must have the type that it states: the encoded type is ${type}` };
  const error = insides[type](cursor) ?? (cursor.atEnd ? null : broken);
  if (error !== null) return { reason: error };
  return { type, base64: written, comment, fingerprint: fingerprintOf(bytes) };
}

const fingerprintOf = (bytes: Buffer): string => `SHA256:${hash("sha256", bytes, "base64").replace(/=+$/, "")}`;

/** Returns the first two words and the rest, trimmed. */
function split(text: string): string[] {
  return (/^\s*(\S*)\s*(\S*)\s*(.*?)\s*$/.exec(text) ?? []).slice(1);
}
