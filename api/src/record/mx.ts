/** MX: a mail server (RFC 1035 section 3.3.9), or none (RFC 7505). Existing clients give the server in either of two fields. */
import { recordSpec, schemas } from "./spec.ts";

export const mx = recordSpec({
  name: "MX",
  code: 15,
  description:
    "Owner: `Name`, else the top, and host: `HostName`; with `ExtHostName`, which is the host then, owner: `HostName`, `Name`, else the top.",
  fields: { ExtHostName: schemas.name, Priority: schemas.u16 },
  owner: ["Name"],
  ownerBeside: { field: "ExtHostName", owner: ["HostName", "Name"] },
  wildcard: true,
  data: [
    { kind: "u16", name: "preference", from: ["Priority"], default: 0, shown: "Priority" },
    {
      kind: "name",
      name: "exchange",
      from: ["ExtHostName", "HostName"],
      blamed: "HostName",
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
