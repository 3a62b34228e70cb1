import assert from "node:assert/strict";
import { createECDH, createHash, generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { anyText } from "../../../../test/support/texts.ts";
import { readPublicKey } from "./publickey.ts";

const field = (data: Buffer | string): Buffer => {
  const bytes = Buffer.from(data as string);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};
const blob = (...fields: (Buffer | string)[]): string => Buffer.concat(fields.map(field)).toString("base64");
const mpint = (bytes: Buffer): Buffer => ((bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes);

const rsa = (bits: number): string => {
  const { n = "", e = "" } = generateKeyPairSync("rsa", { modulusLength: bits }).publicKey.export({ format: "jwk" });
  const [exponent, modulus] = [Buffer.from(e, "base64url"), Buffer.from(n, "base64url")];
  return blob("ssh-rsa", mpint(exponent), mpint(modulus));
};
const point = (curve: string): Buffer => createECDH(curve).generateKeys();

const ed25519 = "AAAAC3NzaC1lZDI1NTE5AAAAIE3p6k3o0o3p0l7mYw2bq1Xn4rZ8t5v9cQ1sD2fG3hJ4";
const p256 = point("prime256v1");
const good: Readonly<Record<string, string>> = {
  "ssh-ed25519": ed25519,
  "ssh-rsa": rsa(2048),
  "ecdsa-sha2-nistp256": blob("ecdsa-sha2-nistp256", "nistp256", p256),
  "ecdsa-sha2-nistp384": blob("ecdsa-sha2-nistp384", "nistp384", point("secp384r1")),
  "ecdsa-sha2-nistp521": blob("ecdsa-sha2-nistp521", "nistp521", point("secp521r1")),
  "sk-ssh-ed25519@openssh.com": blob("sk-ssh-ed25519@openssh.com", Buffer.alloc(32, 7), "ssh:"),
  "sk-ecdsa-sha2-nistp256@openssh.com": blob("sk-ecdsa-sha2-nistp256@openssh.com", "nistp256", p256, "ssh:"),
};

function reasonOf(text: string): string {
  const read = readPublicKey(text);
  return "reason" in read ? read.reason : assert.fail(`${text} was taken`);
}

for (const [type, base64] of Object.entries(good))
  test(`${type} is read as a line, without comment, and alone`, () => {
    const hash = createHash("sha256").update(Buffer.from(base64, "base64")).digest("base64").replace(/=+$/, "");
    const plain = { type, base64, comment: "", fingerprint: `SHA256:${hash}` };
    assert.deepEqual(readPublicKey(`${type} ${base64}`), plain);
    assert.deepEqual(readPublicKey(base64), plain);
    assert.deepEqual(readPublicKey(` ${type}\t${base64}  ann <a@b>  at home `), {
      ...plain,
      comment: "ann <a@b>  at home",
    });
    assert.deepEqual(readPublicKey(`${base64} ann@laptop`), { ...plain, comment: "ann@laptop" });
    assert.deepEqual(readPublicKey(base64.replace(/=+$/, "")), plain);
  });

test("a fingerprint is that of ssh-keygen", () => {
  const key = readPublicKey(ed25519);
  assert.equal("fingerprint" in key && key.fingerprint, "SHA256:VuHrq6jTQnl9j+L3P2O5jpsrgwlEQgqP3g/sycoSk10");
});

test("the error of an invalid key contains the reason", () => {
  const reasons: readonly (readonly [string, RegExp])[] = [
    ["", /must be a key of type/],
    ["laptop", /must be a key of type .*, not "laptop"$/],
    ["MC4CAQAwBQYDK2VwBCIEIsecret", /, not "MC4CAQAwBQYDK2VwBCIE…"$/],
    ["ssh-dss AAAAB3NzaC1kc3M=", /must be a key of type .*, not "ssh-dss"$/],
    [`no-pty ssh-ed25519 ${ed25519}`, /no options in front/],
    [`command="/bin/a b" ssh-ed25519 ${ed25519}`, /no options in front/],
    ["-----BEGIN OPENSSH PRIVATE KEY-----", /not a PEM file/],
    [`ssh-ed25519 ${ed25519}\nssh-ed25519 ${ed25519}`, /one line/],
    [`ssh-ed25519 ${ed25519} a\u0007b`, /one line/],
    ["ssh-ed25519", /type base64/],
    ["ssh-ed25519 AAAA!!!!", /type base64.*, not "ssh-ed25519 AAAA!!!!"$/],
    [`ssh-ed25519 ${ed25519.slice(0, -4)}`, /broken/],
    [`ssh-ed25519 ${ed25519}AAAA`, /broken/],
    [`ssh-rsa ${ed25519}`, /the encoded type is ssh-ed25519/],
    [blob("ssh-dss", "x"), /must be a key of type/],
    [blob("ssh-ed25519", Buffer.alloc(31)), /broken/],
    [blob("ecdsa-sha2-nistp256", "nistp384", p256), /broken/],
    [blob("ecdsa-sha2-nistp256", "nistp256", Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)])), /on the curve/],
    [blob("ecdsa-sha2-nistp256", "nistp256", Buffer.concat([Buffer.of(2), p256.subarray(1)])), /broken/],
    [blob("sk-ssh-ed25519@openssh.com", Buffer.alloc(32)), /broken/],
    [blob("ssh-rsa", Buffer.of(1, 0, 1), Buffer.alloc(256)), /broken/],
    [blob("ssh-rsa", Buffer.of(1), Buffer.concat([Buffer.of(0), Buffer.alloc(256, 0xff)])), /broken/],
    [rsa(1024), /2048 to 16384 bits, not 1024/],
    [blob("ssh-rsa", Buffer.of(1, 0, 1), Buffer.concat([Buffer.of(1), Buffer.alloc(2048, 1)])), /not 16385/],
  ];
  for (const [text, reason] of reasons) assert.match(reasonOf(text), reason, text);
});

test("no text throws, and a parsed key is parsed again unchanged", () => {
  const texts = fc.oneof(
    anyText(200),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => `AAAA${Buffer.from(bytes).toString("base64")}`),
    fc
      .tuple(fc.constantFrom(...Object.entries(good)), fc.string())
      .map(([[type, key], end]) => `${type} ${key} ${end}`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const key = readPublicKey(text);
      if ("reason" in key) assert.match(key.reason, /^must /);
      else assert.deepEqual(readPublicKey(`${key.type} ${key.base64} ${key.comment}`), key);
    }),
  );
});
