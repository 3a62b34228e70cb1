/**
 * The form of a cloud file as JSON Schema, derived from the requests of the contract, so that a new field of the API is a field of the file.
 * References are names instead of ids. The build replaces this module by its values (`scripts/build-cli.ts`).
 */
import { labelCharacters } from "@brume/api/common.ts";
import { bandwidths } from "@brume/api/network.ts";
import { type RecordType, recordSpecs, recordTypes } from "@brume/api/record/types.ts";
import { fieldsOf, operationOf } from "../schema.ts";

/** The keywords of JSON Schema that a cloud file uses. */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  /** What the pattern expects: a keyword that editors show (the JSON language server of Visual Studio Code). */
  readonly patternErrorMessage?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Shape;
  readonly propertyNames?: Shape;
  readonly maxProperties?: number;
  readonly items?: Shape;
  readonly oneOf?: readonly Shape[];
}

/** How a record type is written in a cloud file. */
export interface RecordForm {
  /** By field of the file: the field of the request, and the field of a response. `Name` is the owner. */
  readonly fields: Readonly<Record<string, { readonly request: string; readonly shown: string }>>;
  readonly numbers: readonly string[];
  /** Labels in front of the owner, such as `_sip`. */
  readonly labels: readonly string[];
}

const isNumber = (kind: string) => /^u(8|16|32)$/.test(kind);

function formOf(type: RecordType): RecordForm {
  const { owner, ownerBeside, ownerShown, labels = [], data } = recordSpecs[type];
  const sent = data.map(({ from }) => from[0]);
  const beside = ownerBeside && sent.includes(ownerBeside.field) ? ownerBeside.owner[0] : undefined;
  const names = data.filter(({ kind }) => kind === "name").length;
  return {
    fields: Object.fromEntries([
      ["Name", { request: beside ?? owner?.[0] ?? "Name", shown: ownerShown ?? "HostName" }],
      ...labels.map(({ field }) => [field, { request: field, shown: field }] as const),
      ...data.map(({ kind, from, shown }) => {
        const field = kind === "name" && names === 1 ? "Target" : shown;
        return [field, { request: from[0], shown }] as const;
      }),
    ]),
    numbers: data.filter(({ kind }) => isNumber(kind)).map(({ shown }) => shown),
    labels: labels.map(({ field }) => field),
  };
}

/** Forms of all record types. */
export const recordForms = Object.fromEntries(recordTypes.map((type) => [type, formOf(type)])) as Readonly<
  Record<string, RecordForm>
>;

/** Mbit/s of a new link to the shared network. */
export const sharedBandwidth = bandwidths.public;

const texts: Shape = { type: "string" };

/** Returns a schema without the keywords that only the request reader of the service knows. */
function plain(schema: unknown): Shape {
  if (Array.isArray(schema)) return schema.map(plain) as unknown as Shape;
  if (typeof schema !== "object" || schema === null) return schema as Shape;
  const kept = Object.entries(schema).filter(([key]) => !key.startsWith("x-") && key !== "default");
  const form = (schema as { readonly "x-pattern-description"?: string })["x-pattern-description"];
  return {
    ...Object.fromEntries(kept.map(([key, value]) => [key, plain(value)])),
    ...(form !== undefined && { patternErrorMessage: `must be text with ${form}` }),
  };
}

/** Fields of requests that a file writes as number or text. */
const alsoNumbers = new Set(["NetworkCapacity", "SourcePort", "DestinationPort"]);

/** Returns an object with the fields of a request, without `omit`, and with `more`. */
function object(properties: object, required: readonly string[], omit: readonly string[] = [], more = {}): Shape {
  const kept = Object.entries(properties).filter(([name]) => !omit.includes(name));
  const read = ([name, value]: [string, unknown]) => {
    const shape = plain(value);
    return [name, alsoNumbers.has(name) ? { ...shape, type: ["string", "integer"] } : shape] as const;
  };
  return {
    type: "object",
    required,
    additionalProperties: false,
    properties: { ...Object.fromEntries(kept.map(read)), ...more },
  };
}

const bodyOf = (operation: string) => fieldsOf(operationOf(operation).body);

function recordShape(type: string): Shape {
  const form = recordForms[type] as RecordForm;
  const { data } = recordSpecs[type as RecordType];
  const body = bodyOf(`createRecord${type}`);
  const hasDefault = new Set(data.filter((one) => one.default !== undefined).map(({ shown }) => shown));
  const own = Object.entries(form.fields).map(([name, { request }]) => [name, body[request]] as const);
  const shape = object(
    Object.fromEntries(own),
    ["Type", ...Object.keys(form.fields).filter((name) => !hasDefault.has(name as never))],
    [],
    { TTL: plain(body["TTL"]), Labels: plain(body["Labels"]) },
  );
  const name: Shape = {
    ...texts,
    maxLength: 1024,
    description: "Owner, relative to the domain; `@` is the domain itself.",
  };
  return { ...shape, properties: { Type: { const: type }, ...shape.properties, Name: name } };
}

const listOf = (items: Shape, description: string): Shape => ({ type: "array", description, items });
const fromFile = "`@FILE` is the content of a file beside this one.";

function describeServer(): Shape {
  const body = bodyOf("createServer");
  const secret = plain(body["UserData"]);
  const links: Shape = {
    oneOf: [
      { ...texts, minLength: 1 },
      object({ IP: body["NetworkIP"], Bandwidth: body["NetworkBandwidth"] }, ["Network"], [], {
        Network: { ...texts, minLength: 1, description: "Name of a network; `shared` is the shared network." },
      }),
    ],
  };
  return object(body, ["Name"], ["NetworkID", "NetworkBandwidth", "NetworkIP", "ImageID", "IsNeedSysprep"], {
    Image: { ...plain(body["ImageID"]), description: "Name or id. Used when the server is created." },
    SshKeys: listOf(texts, "Names or ids of SSH keys. Used when the server is created."),
    UserData: {
      ...secret,
      description: `${secret.description ?? ""} ${fromFile} Used when the server is created.`.trim(),
    },
    Networks: listOf(
      links,
      "All networks of the server. Absent: its links stay; a new server gets the shared network.",
    ),
  });
}

function describePublicNetwork(): Shape {
  const tunnel = fieldsOf(bodyOf("configureVpn")["Tunnels"]?.items);
  const key = plain(tunnel["SharedKey"]);
  return object(bodyOf("createPublicNetwork"), ["Name"], [], {
    Firewall: {
      ...object(bodyOf("configureFirewall"), [], ["ConfirmWithin", "Confirm", "Rules"]),
      properties: {
        ...object(bodyOf("configureFirewall"), [], ["ConfirmWithin", "Confirm", "Rules"]).properties,
        Rules: listOf(
          object(fieldsOf(bodyOf("configureFirewall")["Rules"]?.items), ["Action"]),
          "All rules, in this order; the first matching rule decides.",
        ),
      },
      description: "Absent: the firewall stays as it is.",
    },
    Tunnels: listOf(
      object(tunnel, ["Name", "PeerNetwork"], ["Id"], {
        SharedKey: { ...key, description: `${key.description ?? ""} ${fromFile}`.trim() },
      }),
      "Absent: the tunnels stay as they are.",
    ),
  });
}

/** JSON Schema of a cloud file. */
export const cloudSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Brume cloud file",
  description: "Networks, servers and domains for `brume apply`. An absent field stays as it is.",
  ...object({}, [], [], {
    Label: {
      ...texts,
      pattern: "^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
      patternErrorMessage: `must be text with 1-63 ${labelCharacters}`,
      description:
        "Objects of this file get the label `brume/file` with this value. What has the label and is no longer in the file is deleted. Absent: nothing is deleted.",
    },
    PublicNetworks: listOf(describePublicNetwork(), "Public networks with firewall and tunnels."),
    Networks: listOf(object(bodyOf("createNetwork"), ["Name"]), "Private networks."),
    Servers: listOf(describeServer(), "Servers."),
    Domains: listOf(
      object({ Labels: bodyOf("createDomain")["Labels"] }, ["Name"], [], {
        Name: { ...texts, minLength: 1, maxLength: 1024 },
        Records: listOf({ oneOf: recordTypes.map(recordShape) }, "Absent: the records stay as they are."),
      }),
      "Domains with records.",
    ),
  }),
} as const satisfies Shape & { readonly $schema: string; readonly title: string };
