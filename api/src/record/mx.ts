/** MX: a mail server (RFC 1035 section 3.3.9), or none (RFC 7505). Existing clients send the server in either of two fields. */
import { recordSpec, schemas } from "./spec.ts";

/** The MX record type. */
export const mx = recordSpec({
  name: "MX",
  code: 15,
  description:
    "`HostName` is the mail server, and the owner is `Name`, else the domain itself. If `ExtHostName` is present, it is the mail server, and the owner is `HostName`, else `Name`, else the domain itself.",
  fields: {
    ExtHostName: schemas.name("Host name of the mail server (MX) or name server (NS)."),
    Priority: schemas.u16("Preference (MX) or priority (SRV); lower values first. Default 0."),
  },
  owner: ["Name"],
  ownerBeside: { field: "ExtHostName", owner: ["HostName", "Name"] },
  wildcard: true,
  data: [
    { kind: "u16", name: "preference", from: ["Priority"], default: 0, shown: "Priority" },
    {
      kind: "name",
      name: "exchange",
      from: ["ExtHostName", "HostName"],
      errorField: "HostName",
      meaning: "the mail host",
      root: { meaning: "no mail", with: 0 },
      shown: "ExtHostName",
    },
  ],
  omitsClass: true,
  examples: {
    id: 11,
    create: {
      request: { HostName: "mail.example.com", Priority: 10 },
      response: {
        Priority: "10",
        ExtHostName: "mail.example.com.",
        CanonicalDescription: "@ 3600 MX 10 mail.example.com.",
      },
    },
    update: {
      request: { HostName: "mail", Priority: 20 },
      response: {
        Priority: "20",
        ExtHostName: "mail.example.com.",
        CanonicalDescription: "@ 3600 MX 20 mail.example.com.",
      },
    },
  },
});
