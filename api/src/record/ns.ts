/** NS: a name server (RFC 1035 section 3.3.11). Below the top of a domain it delegates its owner to this server. */
import { recordSpec, schemas } from "./spec.ts";

/** The NS record type. */
export const ns = recordSpec({
  name: "NS",
  code: 2,
  description: "The owner is `HostName`, else the domain itself. The name server is `Name`, else `ExtHostName`.",
  fields: { ExtHostName: schemas.name("Host name of the mail server (MX) or name server (NS).") },
  owner: ["HostName"],
  wildcard: false,
  delegated: "at the cut",
  data: [
    {
      kind: "name",
      name: "target",
      from: ["Name", "ExtHostName"],
      meaning: "the name server",
      shown: "ExtHostName",
    },
  ],
  examples: {
    id: 12,
    create: {
      request: { HostName: "lab", Name: "ns.example.net" },
      response: {
        HostName: "lab.example.com.",
        ExtHostName: "ns.example.net.",
        CanonicalDescription: "lab.example.com. 3600 IN NS ns.example.net.",
        PunyName: "lab.example.com.",
      },
    },
    update: {
      request: { HostName: "lab", Name: "ns.example.net", TTL: 600 },
      response: {
        HostName: "lab.example.com.",
        ExtHostName: "ns.example.net.",
        TTL: 600,
        CanonicalDescription: "lab.example.com. 600 IN NS ns.example.net.",
        PunyName: "lab.example.com.",
      },
    },
  },
});
