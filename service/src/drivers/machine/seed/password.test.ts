import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { anyText } from "../../../../../test/support/texts.ts";
import { hashPassword, renderSalt } from "./password.ts";

test("the specification's examples", () => {
  const hash = "svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1";
  assert.equal(hashPassword("Hello world!", "saltstring"), `$6$saltstring$${hash}`);
  const longer = "OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/y3RnOaw5v.";
  assert.equal(hashPassword("Hello world!", "saltstringsaltst", 10_000), `$6$rounds=10000$saltstringsaltst$${longer}`);
});

const openssl = spawnSync("openssl", ["version"]).error ? "openssl is not installed" : false;

test("any password and salt hash as openssl hashes them", { skip: openssl }, () => {
  const line = anyText(100, 1).filter((text) => !/[\0\r\n]/.test(text));
  const lines = fc.array(line, { minLength: 5, maxLength: 5 });
  fc.assert(
    fc.property(lines, fc.uint8Array({ minLength: 1, maxLength: 16 }), (passwords, random) => {
      const salt = renderSalt(random);
      const input = passwords.map((password) => `${password}\n`).join("");
      const opensslHash = execFileSync("openssl", ["passwd", "-6", "-salt", salt, "-stdin"], {
        input,
        encoding: "utf8",
      });
      assert.deepEqual(
        passwords.map((password) => hashPassword(password, salt)),
        opensslHash.trimEnd().split("\n"),
      );
    }),
    { numRuns: 4 },
  );
});

test("a salt has 1 to 16 valid characters; others are refused", () => {
  assert.match(renderSalt(new Uint8Array(40).fill(255)), /^z{16}$/);
  for (const salt of ["", "seventeen-letters", "a$b", "a b"]) assert.throws(() => hashPassword("x", salt), /salt/);
});
