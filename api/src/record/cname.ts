/** CNAME: another name (RFC 1035 section 3.3.1). Its fields are named as existing clients send them: `MnemonicName` is the alias. */
import { recordSpec, schemas } from "./spec.ts";

/** The CNAME record type. */
export const cname = recordSpec({
  name: "CNAME",
  code: 5,
  description: "The owner is `MnemonicName`. The target is `Name`, else `HostName`.",
  fields: { MnemonicName: schemas.name("The alias: owner of the record.") },
  owner: ["MnemonicName"],
  ownerMeaning: "the alias",
  ownerShown: "MnemonicName",
  wildcard: true,
  alias: true,
  data: [
    {
      kind: "name",
      name: "target",
      from: ["Name", "HostName"],
      meaning: "the target",
      shown: "HostName",
      showsTop: true,
    },
  ],
  examples: {
    id: 10,
    create: {
      request: { Name: "@", MnemonicName: "blog" },
      response: {
        MnemonicName: "blog.example.com.",
        CanonicalDescription: "blog.example.com. 3600 IN CNAME @",
        PunyName: "blog.example.com.",
      },
    },
    update: {
      request: { Name: "pages.example.net", MnemonicName: "blog" },
      response: {
        HostName: "pages.example.net.",
        MnemonicName: "blog.example.com.",
        CanonicalDescription: "blog.example.com. 3600 IN CNAME pages.example.net.",
        PunyName: "blog.example.com.",
      },
    },
  },
});
