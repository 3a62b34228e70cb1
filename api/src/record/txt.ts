/** TXT: text (RFC 1035 section 3.3.14), in strings of at most 255 bytes. */
import { limits, recordSpec, schemas, usualOwner } from "./spec.ts";

/** The TXT record type. */
export const txt = recordSpec({
  name: "TXT",
  code: 16,
  description: `${usualOwner} The value is \`Text\`, at most ${limits.textBytes} bytes; \`"a=1" "b=2"\` is two strings.`,
  fields: { Text: schemas.text("Text of the record. Quoted strings with blanks between stay separate strings.") },
  wildcard: true,
  data: [{ kind: "strings", name: "text", from: ["Text"], meaning: "the text", shown: "Text" }],
  examples: {
    id: 14,
    create: {
      request: { TTL: 60, Name: "_acme-challenge.example.com", Text: "abc" },
      response: {
        HostName: "_acme-challenge.example.com.",
        Text: '"abc" ',
        TTL: 60,
        CanonicalDescription: '_acme-challenge.example.com. 60 IN TXT "abc"',
        PunyName: "_acme-challenge.example.com.",
      },
    },
    update: {
      request: { Name: "_acme-challenge", TTL: 60, Text: "def" },
      response: {
        HostName: "_acme-challenge.example.com.",
        Text: '"def" ',
        TTL: 60,
        CanonicalDescription: '_acme-challenge.example.com. 60 IN TXT "def"',
        PunyName: "_acme-challenge.example.com.",
      },
    },
  },
});
