/** A: an IPv4 address (RFC 1035 section 3.4.1). */
import { recordSpec, schemas, usualOwner } from "./spec.ts";

/** The A record type. */
export const a = recordSpec({
  name: "A",
  code: 1,
  description: `${usualOwner} The value is \`IP\`, an IPv4 address.`,
  fields: { IP: schemas.address("IPv4 or IPv6 address, by the type of the record.") },
  wildcard: true,
  delegated: "at and below the cut",
  data: [{ kind: "ipv4", name: "address", from: ["IP"], shown: "IP" }],
  examples: {
    id: 8,
    create: {
      request: { IP: "10.63.0.2", Name: "www", TTL: 3600 },
      response: {
        IP: "10.63.0.2",
        HostName: "www.example.com.",
        CanonicalDescription: "www.example.com. 3600 IN A 10.63.0.2",
        PunyName: "www.example.com.",
      },
    },
    update: {
      request: { IP: "10.63.0.3", Name: "www.example.com", TTL: 300 },
      response: {
        IP: "10.63.0.3",
        HostName: "www.example.com.",
        TTL: 300,
        CanonicalDescription: "www.example.com. 300 IN A 10.63.0.3",
        PunyName: "www.example.com.",
      },
    },
  },
});
