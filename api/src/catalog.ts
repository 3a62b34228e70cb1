/** What servers are made from: images, the locations they stand in, and the SSH keys put into them. */
import { type Static, Type } from "typebox";
import {
  boolean,
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  maxId,
  name,
  nameFilter,
  nullable,
  optional,
  optionalId,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { operations } from "./operation.ts";
import { WorkError } from "./work.ts";

export const families = ["Linux", "Windows", "Bsd"] as const;
export type Family = (typeof families)[number];

/** `GoldServer`: the operator's; `Client`: the project's own; `Backup`: made by itself, once a day. */
export const imageTypes = ["GoldServer", "Client", "Backup"] as const;
export type ImageType = (typeof imageTypes)[number];

/** `Available`: known, and fetched when the first server is made from it. */
export const imageStates = ["Available", "New", "Active", "Failed"] as const;
export type ImageState = (typeof imageStates)[number];

/** Types of OpenSSH (`ssh-keygen(1)`); the last two are keys in hardware. */
export const sshKeyTypes = [
  "ssh-ed25519",
  "ssh-rsa",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "sk-ssh-ed25519@openssh.com",
  "sk-ecdsa-sha2-nistp256@openssh.com",
] as const;
export type SshKeyType = (typeof sshKeyTypes)[number];

export const SshKey = Type.Object(
  {
    ID: id(),
    Title: name(),
    PublicKey: text({ description: "The base64 part alone." }),
    IsActive: boolean(),
    Type: word(sshKeyTypes),
    Comment: text(),
    Fingerprint: text({ description: "`SHA256:` as `ssh-keygen -l` prints it." }),
    DateCreate: date(),
    Labels,
  },
  { title: "SshKey" },
);
export type SshKey = Static<typeof SshKey>;

export const Image = Type.Object(
  {
    ID: id(),
    Name: name(),
    DisplayName: text(),
    DCLocation: nullable(text({ description: "`TechTitle`; null: every location." })),
    Hdd: integer(1, 4096, { description: "GB a server needs at least." }),
    Family: word(families),
    IsAvailableISP: boolean(),
    IsISPLiteEnabled: boolean(),
    IsISPBusinessEnabled: boolean(),
    Type: word(imageTypes),
    LinkedSshKeys: list(SshKey, { maxItems: 0 }),
    OperatingSystemType: text(),
    TechName: text(),
    State: word(imageStates),
    MinRAM: integer(1, 1_048_576, { description: "MB a server needs at least." }),
    DateCreate: date(),
    Error: nullable(WorkError),
    ServerID: nullable(id({ description: "The server it was made of, which may be gone." })),
    Progress: integer(0, 100, { description: "How much of it is there." }),
    Identity: nullable(
      Type.Object(
        {
          Removed: boolean({
            description:
              "The image no longer holds what identified the server: host keys, machine id, password hashes, authorized keys, logs, DHCP and cloud-init state. In backups it is kept.",
          }),
          Detail: text({ description: "Why it was not, or not everywhere; else empty." }),
        },
        { description: "Null: the image was not made of a server, or is not ready." },
      ),
    ),
    Labels,
  },
  { title: "Image" },
);
export type Image = Static<typeof Image>;

const amount = () => integer(0, maxId);

export const Location = Type.Object(
  {
    ID: id(),
    Title: text(),
    TechTitle: text(),
    ShortTitle: text(),
    Country: text(),
    City: text(),
    IsEnableLowPool: boolean(),
    IsEnableHighPool: boolean(),
    IsEnableBackup: boolean(),
    IsEnableIpV6: boolean(),
    IsOnlyForAdmins: boolean(),
    HiddenToNewProjects: boolean(),
    IsFirewallEnabled: boolean(),
    Engines: Type.Object({
      Machine: word(["host", "sim"]),
      Router: word(["host", "sim"]),
      NameServer: word(["builtin"]),
    }),
    Capacity: Type.Object(
      {
        CPU: amount(),
        RAM: amount(),
        HDD: amount(),
        FreeCPU: amount(),
        FreeRAM: amount(),
        FreeHDD: amount(),
      },
      { description: "Cores, MB and GB after over-commitment. Servers that are off keep their share." },
    ),
  },
  { title: "Location" },
);
export type Location = Static<typeof Location>;

const keyParam = { id: "sshkey_not_found" } as const;
const imageParam = { id: "image_not_found" } as const;

export const catalogOperations = operations({
  listImages: {
    method: "GET",
    path: "/image",
    access: "server:read",
    summary: "List images, the operator's and the project's own",
    query: listQuery({
      name: nameFilter,
      state: wordsFilter(imageStates),
      label: labelFilter,
      location: optional(text({ description: "What can be used there: one name or several with commas." })),
    }),
    answer: list(Image),
    list: true,
  },
  readImage: {
    method: "GET",
    path: "/image/{id}",
    access: "server:read",
    summary: "Read an image",
    params: imageParam,
    answer: Image,
    tagged: true,
  },
  listLocations: {
    method: "GET",
    path: "/dcLocation",
    access: "any",
    observes: true,
    summary: "List locations with what is free in them",
    description: "The first is the default. With engines `sim` every answer is the same, but no machine runs.",
    query: listQuery({ name: nameFilter }),
    answer: list(Location),
    list: true,
  },
  listSshKeys: {
    method: "GET",
    path: "/sshkey",
    access: "server:read",
    summary: "List SSH keys",
    query: listQuery({ name: nameFilter, label: labelFilter }),
    answer: list(SshKey),
    list: true,
  },
  createSshKey: {
    method: "POST",
    path: "/sshkey",
    access: "server:write",
    summary: "Add an SSH key",
    description: "The same title with the same key again answers the key that is there.",
    body: Type.Object({
      Title: name({ "x-also": ["Name"] }),
      PublicKey: text({
        maxLength: 8192,
        "x-also": ["Value"],
        description: "An OpenSSH line `type base64 [comment]`, or the base64 part alone.",
      }),
      Labels: optional(Labels),
    }),
    answer: SshKey,
    tagged: true,
    shows: "readSshKey",
    repeatable: true,
    faults: ["title_taken", "quota_exceeded"],
  },
  readSshKey: {
    method: "GET",
    path: "/sshkey/{id}",
    access: "server:read",
    summary: "Read an SSH key",
    params: keyParam,
    answer: SshKey,
    tagged: true,
  },
  deleteSshKey: {
    method: "DELETE",
    path: "/sshkey/{id}",
    access: "server:write",
    summary: "Delete an SSH key",
    description: "Servers keep what was put into them.",
    params: keyParam,
    answer: null,
  },
});

/** Operations that need the machines: they join the contract together with the flows that carry them out. */
export const imageOperations = operations({
  createImage: {
    method: "POST",
    path: "/image",
    access: "server:write",
    summary: "Make an image from a server's disk, or import one",
    description:
      "Exactly one of `ServerID`, `Url` and `File`. From a server: a snapshot in the server's turn, from which the guest's identity is removed. An import is qcow2 or raw, checked and converted.",
    body: Type.Object({
      Name: name(),
      ServerID: optionalId({ description: "Server whose disk becomes the image." }),
      Url: optional(text({ maxLength: 2048, description: "http or https, not at a private address." })),
      File: optional(text({ minLength: 1, maxLength: 255, description: "Name of a file in the import folder." })),
      Sha256: optional(
        text({ pattern: "^[0-9A-Fa-f]{64}$", "x-says": "64 hexadecimal digits", description: "Required with `Url`." }),
      ),
      Family: optional(word(families, { description: "For an import. Default `Linux`." })),
      MinRAM: optional(integer(1, 1_048_576, { description: "MB, for an import. Default 128." })),
      TechName: optional(
        text({
          minLength: 1,
          maxLength: 64,
          pattern: "^[A-Za-z0-9._-]*$",
          "x-says": "letters, digits, dots, underscores and hyphens",
          description: "Default: `Name` with hyphens for all other characters.",
        }),
      ),
      Labels: optional(Labels),
    }),
    answer: Image,
    tagged: true,
    shows: "readImage",
    faults: ["action_not_allowed", "queue_full", "quota_exceeded", "no_capacity", "engine_unavailable"],
  },
  deleteImage: {
    method: "DELETE",
    path: "/image/{id}",
    access: "server:write",
    summary: "Delete an own image",
    description: "Servers made from it go on.",
    params: imageParam,
    answer: null,
    faults: ["stock_image"],
  },
});
