/** AAAA: an IPv6 address (RFC 3596). */
import { recordSpec, schemas, usualOwner } from "./spec.ts";

/** The AAAA record type. */
export const aaaa = recordSpec({
  name: "AAAA",
  code: 28,
  description: `${usualOwner} The value is \`IP\`, an IPv6 address.`,
  fields: { IP: schemas.address("IPv4 or IPv6 address, by the type of the record.") },
  wildcard: true,
  delegated: "at and below the cut",
  data: [{ kind: "ipv6", name: "address", from: ["IP"], shown: "IP" }],
  examples: {
    id: 9,
    create: {
      request: { IP: "2001:0DB8::17", Name: "@" },
      response: { IP: "2001:db8::17", CanonicalDescription: "@ 3600 IN AAAA 2001:db8::17" },
    },
    update: {
      request: { IP: "2001:db8::18" },
      response: { IP: "2001:db8::18", CanonicalDescription: "@ 3600 IN AAAA 2001:db8::18" },
    },
  },
});
