/** SRV: host and port of a service (RFC 2782). Service and protocol are labels in front of the owner. */
import { recordSpec, schemas, usualOwner } from "./spec.ts";

/** The SRV record type. */
export const srv = recordSpec({
  name: "SRV",
  code: 33,
  description: `${usualOwner} Required: \`Service\`, \`Proto\`, \`Target\`, \`Port\`.`,
  fields: {
    Service: schemas.label("Service, such as `sip`, with or without `_`."),
    Proto: schemas.label("Protocol, such as `tcp`, with or without `_`."),
    Priority: schemas.u16("Preference (MX) or priority (SRV); lower values first. Default 0."),
    Weight: schemas.u16("Share among targets of the same priority. Default 0."),
    Port: schemas.u16("Port of the service."),
    Target: schemas.name("Host name of the service; `.` for no service."),
  },
  wildcard: false,
  // Responses show the two in different forms, as existing clients expect.
  labels: [
    { field: "Service", meaning: "such as xmpp-client", show: (label) => `${label}.` },
    { field: "Proto", meaning: "such as tcp", show: (label) => label.slice(1) },
  ],
  data: [
    { kind: "u16", name: "priority", from: ["Priority"], default: 0, shown: "Priority" },
    { kind: "u16", name: "weight", from: ["Weight"], default: 0, shown: "Weight" },
    { kind: "u16", name: "port", from: ["Port"], meaning: "the port of the service", shown: "Port" },
    {
      kind: "name",
      name: "target",
      from: ["Target"],
      meaning: "the host of the service",
      root: { meaning: "no service" },
      shown: "Target",
    },
  ],
  examples: {
    id: 13,
    create: {
      request: {
        Service: "xmpp-client",
        Proto: "tcp",
        Name: "@",
        Priority: 20,
        Weight: 0,
        Port: 5222,
        Target: "chat.example.com",
      },
      response: {
        Priority: "20",
        Service: "_xmpp-client.",
        Proto: "tcp",
        Weight: "0",
        Port: "5222",
        Target: "chat.example.com.",
        CanonicalDescription: "_xmpp-client._tcp.example.com. 3600 IN SRV 20 0 5222 chat.example.com.",
      },
    },
    update: {
      request: {
        Service: "_xmpp-client.",
        Proto: "tcp",
        Name: "@",
        Priority: 20,
        Weight: 5,
        Port: 5223,
        Target: "chat",
      },
      response: {
        Priority: "20",
        Service: "_xmpp-client.",
        Proto: "tcp",
        Weight: "5",
        Port: "5223",
        Target: "chat.example.com.",
        CanonicalDescription: "_xmpp-client._tcp.example.com. 3600 IN SRV 20 5 5223 chat.example.com.",
      },
    },
  },
});
