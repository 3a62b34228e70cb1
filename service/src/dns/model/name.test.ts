/** Names: each rule of docs/spec.md#domain, #record by example, and that what is shown reads back as the same name. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyText } from "../../../../test/support/texts.ts";
import {
  asciiName,
  type DomainName,
  readDomainName,
  readOwner,
  readTarget,
  showOwner,
  showTarget,
  unicodeName,
  wireLength,
} from "./name.ts";

const example = "example.com";
const code = (outcome: unknown) => (outcome as { code?: string }).code;

test("domain names", () => {
  const cases: [string, string, string][] = [
    ["Example.COM.", "example.com", "example.com"],
    ["local", "local", "local"],
    ["Пример.РФ", "пример.рф", "xn--e1afmkfd.xn--p1ai"],
    ["XN--E1AFMKFD.xn--p1ai", "пример.рф", "xn--e1afmkfd.xn--p1ai"],
    ["faß.de", "faß.de", "xn--fa-hia.de"],
    ["bücher。example", "bücher.example", "xn--bcher-kva.example"],
    ["ＷＷＷ.example", "www.example", "www.example"],
    ["_dmarc.עברית.il", "_dmarc.עברית.il", "_dmarc.xn--5dbqzzl.il"],
    ["r3---sn.example", "r3---sn.example", "r3---sn.example"],
    ["0/25.2.0.192.in-addr.arpa", "0/25.2.0.192.in-addr.arpa", "0/25.2.0.192.in-addr.arpa"],
    ["A\\.b.example", "a\\046b.example", "a\\046b.example"],
  ];
  for (const [given, name, ascii] of cases) assert.deepEqual(readDomainName(given), { name, ascii }, given);
});

test("invalid domain names and their reasons", () => {
  const cases: [string, string][] = [
    ["", "format_invalid"],
    [".", "format_invalid"],
    ["example..com", "format_invalid"],
    ["example.com..", "format_invalid"],
    [".example.com", "format_invalid"],
    ["-a.com", "format_invalid"],
    ["a-.com", "format_invalid"],
    ["a b.com", "format_invalid"],
    ["a:b.com", "format_invalid"],
    ["a\\", "format_invalid"],
    ["a\\256.com", "format_invalid"],
    ["a\\1.com", "format_invalid"],
    ["я\\.b.com", "format_invalid"],
    ["*.com", "format_invalid"],
    ["10.0.0.1", "format_invalid"],
    ["2001:db8::1", "format_invalid"],
    ["xn--a.com", "format_invalid"],
    ["xn--example-.com", "format_invalid"],
    ["a\u0000.com", "format_invalid"],
    ["\ud800.com", "format_invalid"],
    ["℀.com", "format_invalid"],
    ["a＼046b.com", "format_invalid"],
    [`${"a".repeat(64)}.com`, "too_long"],
    [`${"a.".repeat(126)}aa`, "too_long"],
    ["я".repeat(2000), "too_long"],
    [`a${"\u00ad".repeat(5000)}`, "too_long"],
  ];
  for (const [given, expected] of cases)
    assert.equal(code(readDomainName(given)), expected, JSON.stringify(given.slice(0, 40)));
  assert.deepEqual(readDomainName("a b.com"), {
    code: "format_invalid",
    reason: 'must be a name of letters, digits, - and _, not "a b.com"',
  });
});

test("127 labels and 253 characters are a valid name", () => {
  const longest = `${"a.".repeat(126)}a`;
  assert.equal(longest.length, 253);
  assert.deepEqual(readDomainName(longest), { name: longest, ascii: longest });
});

test("owners", () => {
  const cases: [string, string][] = [
    ["", "@"],
    ["@", "@"],
    ["example.com", "@"],
    ["EXAMPLE.com.", "@"],
    ["www", "www"],
    ["www.example.com", "www"],
    ["www.example.com.", "www"],
    ["_acme-challenge.WWW", "_acme-challenge.WWW"],
    ["www.other.org", "www.other.org"],
    ["notexample.com", "notexample.com"],
    ["*", "*"],
    ["*.a.example.com", "*.a"],
    ["почта", "xn--80a1acny"],
  ];
  for (const [given, owner] of cases) assert.equal(readOwner(given, example, true), owner, given);
});

test("invalid owners", () => {
  for (const outside of [".", "www.", "notexample.com.", "www.other.org."])
    assert.equal(code(readOwner(outside, example, true)), "name_outside_domain", outside);
  for (const bad of ["a.*", "a*", "**", "*a.b", "@.a", "a..b", "-a", "a b"])
    assert.equal(code(readOwner(bad, example, true)), "format_invalid", bad);
  assert.equal(code(readOwner("*", example, false)), "format_invalid");
  // With the dot and the domain: 253 fit, 254 do not.
  const longest = "a.".repeat(120) + "a";
  assert.equal(readOwner(longest, example, true), longest);
  assert.equal(code(readOwner(`${longest}a`, example, true)), "too_long");
});

test("owners keep their letter case and escapes, regardless of the case of the domain", () => {
  const cases: [string, string][] = [
    ["WWW", "WWW"],
    ["WwW.EXAMPLE.com", "WwW"],
    ["Example.COM.", "@"],
    ["a\\.b", "a\\046b"],
    ["a\\.b.example.com.", "a\\046b"],
    ["\\032x\\065", "\\032xA"],
    ["a\\.example.com", "a\\046example.com"],
    ["1.0/25", "1.0/25"],
  ];
  for (const [given, owner] of cases) assert.equal(readOwner(given, example, true), owner, given);
  assert.equal(showOwner("A\\046b\\032", { name: example, ascii: example }), "A\\.b\\032.example.com.");
  const long = `${"\\032".repeat(63)}.`.repeat(3);
  assert.equal(readOwner(`${long}${"\\032".repeat(49)}`, example, true), `${long}${"\\032".repeat(49)}`);
  assert.equal(code(readOwner(`${long}${"\\032".repeat(50)}`, example, true)), "too_long");
});

test("targets", () => {
  const cases: [string, string][] = [
    ["@", "example.com"],
    ["www", "www.example.com"],
    ["www.", "www"],
    ["Pages.Example.NET", "Pages.Example.NET"],
    ["first\\.last.example.net", "first\\046last.example.net"],
    ["a\\.", "a\\046.example.com"],
    ["a\\\\.", "a\\092"],
    ["1.0/25.2.0.192.in-addr.arpa", "1.0/25.2.0.192.in-addr.arpa"],
    ["a_b.example.net.", "a_b.example.net"],
    ["почта", "xn--80a1acny.example.com"],
    ["a。b", "a.b"],
    [".", "."],
  ];
  for (const [given, target] of cases) assert.equal(readTarget(given, example), target, given);
  for (const bad of ["10.0.0.1", "10.0.0.1.", "2001:db8::1", "::1", "[::1]", "*.a.b", "a..b", "a b", "http://a.b/"])
    assert.equal(code(readTarget(bad, example)), "format_invalid", bad);
});

const label = fc.oneof(
  // A label with this prefix must be valid Punycode beside a label in Unicode.
  fc.stringMatching(/^[A-Za-z0-9_]([a-z0-9_/-]{0,8}[A-Za-z0-9_])?$/).filter((text) => !/^xn--/i.test(text)),
  fc.stringMatching(/^[a-z](\\(\.|\\|032|255|000)){1,3}$/),
  fc.stringMatching(/^[а-яё]{1,8}$/),
  fc.stringMatching(/^[א-ת]{1,5}$/),
  fc.constantFrom("faß", "☕", "xn--e1afmkfd", "ЁЖ", "日本", "_dmarc"),
);
const anyName = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join("."));

test("property: owner and target are parsed again from their response forms", () => {
  fc.assert(
    fc.property(anyName, anyName, (domainText, text) => {
      const domain = readDomainName(`${domainText}.zone`) as DomainName;
      const owner = readOwner(text, domain.ascii, true) as string;
      assert.equal(typeof owner, "string");
      assert.equal(readOwner(showOwner(owner, domain), domain.ascii, true), owner);
      assert.equal(readOwner(`${owner}.${domain.ascii}.`, domain.ascii, true), owner);
      const target = readTarget(`${text}.x`, domain.ascii) as string;
      assert.equal(readTarget(showTarget(target, domain), domain.ascii), target);
      assert.deepEqual(readDomainName(domain.name), domain);
    }),
    { numRuns: 500 },
  );
});

test("property: any text is a valid name or an error with a reason", () => {
  const text = fc.oneof(anyText(80), fc.string({ maxLength: 300 }), anyName);
  fc.assert(
    fc.property(text, fc.boolean(), (one, wildcard) => {
      const outcome = asciiName(one, wildcard);
      if (typeof outcome !== "string") {
        assert.match(outcome.reason, /^(must|may) /);
        return;
      }
      assert.ok(wireLength(outcome) <= 253);
      const labels = outcome.split(".");
      if (wildcard && labels[0] === "*") labels.shift();
      for (const part of labels) assert.match(part, /^(?!-)(?:[A-Za-z0-9_/-]|\\\d{3}){1,63}(?<!-)$/);
      assert.equal(asciiName(unicodeName(outcome), wildcard), outcome);
    }),
    { numRuns: 3000 },
  );
});
