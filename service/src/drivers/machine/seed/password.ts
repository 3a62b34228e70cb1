/**
 * Passwords as /etc/shadow and cloud-init's `hashed_passwd` want them: SHA-512 crypt, `$6$SALT$HASH`. Made in process so that no
 * password ever stands in an argument list, a file or a pipe; the seed holds the hash only.
 * Source: Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512", version 0.6; the numbers in comments are its steps.
 */
import { createHash } from "node:crypto";

const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** What every crypt takes when none are named, so the hash does not name them either. */
const usualRounds = 5000;
/** The least that the specification allows: enough for a password that nobody has thought up. */
export const fewestRounds = 1000;

function digest(parts: readonly Buffer[]): Buffer {
  const hash = createHash("sha512");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** `bytes` again and again, up to that length. */
const fill = (bytes: Buffer, length: number): Buffer => Buffer.alloc(length, bytes);

/** 1 to 16 characters of `./0-9A-Za-z` out of as many random bytes. */
export const renderSalt = (random: Uint8Array): string =>
  Array.from(random.subarray(0, 16), (byte) => alphabet[byte & 63]).join("");

/** Takes about 1 ms of the processor per 1000 rounds. `salt` as from `renderSalt`. */
export function hashPassword(password: string, salt: string, rounds: number = usualRounds): string {
  if (!/^[./0-9A-Za-z]{1,16}$/.test(salt)) throw new Error("a salt has 1 to 16 characters of ./0-9A-Za-z");
  const key = Buffer.from(password, "utf8");
  const seasoning = Buffer.from(salt, "latin1");

  // 1-12
  const alternate = digest([key, seasoning, key]);
  const start = [key, seasoning, fill(alternate, key.length)];
  for (let bits = key.length; bits > 0; bits >>= 1) start.push(bits & 1 ? alternate : key);
  let state = digest(start);
  // 13-20
  const keyBytes = fill(digest(new Array<Buffer>(key.length).fill(key)), key.length);
  const saltBytes = fill(digest(new Array<Buffer>(16 + (state[0] ?? 0)).fill(seasoning)), seasoning.length);
  // 21
  for (let round = 0; round < rounds; round++) {
    const parts = [round & 1 ? keyBytes : state];
    if (round % 3 !== 0) parts.push(saltBytes);
    if (round % 7 !== 0) parts.push(keyBytes);
    parts.push(round & 1 ? state : keyBytes);
    state = digest(parts);
  }
  return `$6$${rounds === usualRounds ? "" : `rounds=${rounds}$`}${salt}$${encode(state)}`;
}

/** 22e: 21 groups of three bytes, each byte one step further in its third and the thirds taking turns, then the last byte. */
function encode(bytes: Buffer): string {
  const at = (index: number) => bytes[index] ?? 0;
  const emit = (value: number, count: number) =>
    Array.from({ length: count }, (_, place) => alphabet[(value >> (6 * place)) & 63]).join("");
  const groups = Array.from({ length: 21 }, (_, group) => {
    const order = [group, group + 21, group + 42].map((_value, third, all) => all[(third + group) % 3] ?? 0);
    const [high = 0, middle = 0, low = 0] = order;
    return emit((at(high) << 16) | (at(middle) << 8) | at(low), 4);
  });
  return groups.join("") + emit(at(63), 2);
}
