/**
 * Hashes passwords for /etc/shadow and cloud-init's `hashed_passwd`: SHA-512 crypt, `$6$SALT$HASH`. The hash is computed in process, so the
 * password is never in an argument list, a file or a pipe. Source: Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512", version 0.6; the
 * numbers in comments are its steps.
 */
import { hash } from "node:crypto";

const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Default of the specification; the hash does not name it. */
const defaultRounds = 5000;
/** Minimum of the specification; sufficient for a random password. */
export const fewestRounds = 1000;

const digest = (parts: readonly Buffer[]): Buffer => hash("sha512", Buffer.concat(parts), "buffer");

/** Repeats `bytes` up to that length. */
const fill = (bytes: Buffer, length: number): Buffer => Buffer.alloc(length, bytes);

/** Returns a salt of 1 to 16 characters of `./0-9A-Za-z`, one per random byte. */
export const renderSalt = (random: Uint8Array): string =>
  Array.from(random.subarray(0, 16), (byte) => alphabet[byte & 63]).join("");

/** Returns the hash of a password, with a salt from `renderSalt`. Takes about 1 ms of CPU time per 1000 rounds. */
export function hashPassword(password: string, salt: string, rounds: number = defaultRounds): string {
  if (!/^[./0-9A-Za-z]{1,16}$/.test(salt)) throw new Error("a salt has 1 to 16 characters of ./0-9A-Za-z");
  const key = Buffer.from(password, "utf8");
  const saltKey = Buffer.from(salt, "latin1");

  // 1-12
  const alternate = digest([key, saltKey, key]);
  const start = [key, saltKey, fill(alternate, key.length)];
  for (let bits = key.length; bits > 0; bits >>= 1) start.push(bits & 1 ? alternate : key);
  const state = digest(start);
  // 13-20
  const keyBytes = fill(digest(new Array<Buffer>(key.length).fill(key)), key.length);
  const saltBytes = fill(digest(new Array<Buffer>(16 + (state[0] ?? 0)).fill(saltKey)), saltKey.length);
  // 21. One call for each round with a string as its result: hash objects and new buffers take three times as long.
  const space = Buffer.alloc(2 * keyBytes.length + saltBytes.length + state.length);
  for (let round = 0; round < rounds; round++) {
    let length = (round & 1 ? keyBytes : state).copy(space);
    if (round % 3 !== 0) length += saltBytes.copy(space, length);
    if (round % 7 !== 0) length += keyBytes.copy(space, length);
    length += (round & 1 ? state : keyBytes).copy(space, length);
    state.write(hash("sha512", space.subarray(0, length), "binary"), "binary");
  }
  return `$6$${rounds === defaultRounds ? "" : `rounds=${rounds}$`}${salt}$${encode(state)}`;
}

/** 22e: encodes 21 groups of three bytes, one byte from each third of the digest with rotating order, then the last byte. */
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
