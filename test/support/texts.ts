/** Texts for tests of properties. */
import fc from "fast-check";

const codePoint = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));

/**
 * Returns texts of any characters, and at times such as `__proto__`. Those of `fc.string({ unit: "binary" })` are the same, but it first lists a million
 * characters, which takes a second.
 */
export const anyText = (maxLength: number, minLength = 0): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 9, arbitrary: fc.array(codePoint, { minLength, maxLength }).map((characters) => characters.join("")) },
    { weight: 1, arbitrary: fc.string({ minLength, maxLength }) },
  );
