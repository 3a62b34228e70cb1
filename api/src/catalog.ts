/** Images, locations and SSH keys: what servers are created from. */
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

/** Operating system families of images. */
export const families = ["Linux", "Windows", "Bsd"] as const;
/** Operating system family. */
export type Family = (typeof families)[number];

/** `GoldServer`: image of the operator; `Client`: image of the project; `Backup`: daily backup of a server. */
export const imageTypes = ["GoldServer", "Client", "Backup"] as const;
/** A value of `imageTypes`. */
export type ImageType = (typeof imageTypes)[number];

/** `Available`: in the catalog, and downloaded when the first server is created from it. */
export const imageStates = ["Available", "New", "Active", "Failed"] as const;
/** A value of `imageStates`. */
export type ImageState = (typeof imageStates)[number];

/** Key types of OpenSSH (`ssh-keygen(1)`). The last two are hardware keys. */
export const sshKeyTypes = [
  "ssh-ed25519",
  "ssh-rsa",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "sk-ssh-ed25519@openssh.com",
  "sk-ecdsa-sha2-nistp256@openssh.com",
] as const;
/** A value of `sshKeyTypes`. */
export type SshKeyType = (typeof sshKeyTypes)[number];

/** A public key that new servers can contain. */
export const SshKey = Type.Object(
  {
    ID: id(),
    Title: name(),
    PublicKey: text({ description: "The base64 part of the OpenSSH line." }),
    IsActive: boolean(),
    Type: word(sshKeyTypes),
    Comment: text(),
    Fingerprint: text({ description: "`SHA256:` fingerprint as printed by `ssh-keygen -l`." }),
    DateCreate: date(),
    Labels,
  },
  { title: "SshKey" },
);
/** TypeScript type of this schema. */
export type SshKey = Static<typeof SshKey>;

/** A guest image: of the operator, or created by a project from a server or a URL. */
export const Image = Type.Object(
  {
    ID: id(),
    Name: name(),
    DisplayName: text(),
    DCLocation: nullable(text({ description: "`TechTitle` of the location. `null`: every location." })),
    Hdd: integer(1, 4096, { description: "Smallest disk of a server, in GB." }),
    Family: word(families),
    IsAvailableISP: boolean(),
    IsISPLiteEnabled: boolean(),
    IsISPBusinessEnabled: boolean(),
    Type: word(imageTypes),
    LinkedSshKeys: list(SshKey, { maxItems: 0 }),
    OperatingSystemType: text(),
    TechName: text(),
    State: word(imageStates),
    MinRAM: integer(1, 1_048_576, { description: "Smallest memory of a server, in MB." }),
    DateCreate: date(),
    Error: nullable(WorkError),
    ServerID: nullable(id({ description: "Server from which the image was created; it may be deleted." })),
    Progress: integer(0, 100, { description: "Percent of the image that is stored." }),
    Identity: nullable(
      Type.Object(
        {
          Removed: boolean({
            description:
              "`true`: SSH host keys, machine id, password hashes, authorized keys, logs, DHCP and cloud-init state are removed. Backups keep them.",
          }),
          Detail: text({ description: "Why nothing or not everything was removed; otherwise empty." }),
        },
        { description: "`null`: the image was not created from a server, or is not ready." },
      ),
    ),
    Labels,
  },
  { title: "Image" },
);
/** TypeScript type of this schema. */
export type Image = Static<typeof Image>;

const amount = () => integer(0, maxId);

/** A place where servers can be created, with its free and total resources. */
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
      { description: "Virtual CPUs, MB and GB, overcommit included. A powered-off server keeps its share." },
    ),
  },
  { title: "Location" },
);
/** TypeScript type of this schema. */
export type Location = Static<typeof Location>;

const keyParam = { id: "sshkey_not_found" } as const;
const imageParam = { id: "image_not_found" } as const;

/** Operations on SSH keys, and reads of images and locations. */
export const catalogOperations = operations({
  listImages: {
    method: "GET",
    path: "/image",
    access: "server:read",
    summary: "List images of the operator and of the project",
    query: listQuery({
      name: nameFilter,
      state: wordsFilter(imageStates),
      label: labelFilter,
      location: optional(text({ description: "Images usable in these locations: names, separated by commas." })),
    }),
    answer: list(Image),
    list: true,
  },
  readImage: {
    method: "GET",
    path: "/image/{id}",
    access: "server:read",
    summary: "Get an image",
    params: imageParam,
    answer: Image,
    etag: true,
  },
  listLocations: {
    method: "GET",
    path: "/dcLocation",
    access: "any",
    observes: true,
    summary: "List locations and their free capacity",
    description: "The first location is the default. Engine `sim`: the responses are the same, but no VM runs.",
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
    summary: "Create an SSH key",
    description: "Idempotent: the same title and key return the existing object.",
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
    etag: true,
    resultOperation: "readSshKey",
    repeatable: true,
    errors: ["title_taken", "quota_exceeded"],
  },
  readSshKey: {
    method: "GET",
    path: "/sshkey/{id}",
    access: "server:read",
    summary: "Get an SSH key",
    params: keyParam,
    answer: SshKey,
    etag: true,
  },
  deleteSshKey: {
    method: "DELETE",
    path: "/sshkey/{id}",
    access: "server:write",
    summary: "Delete an SSH key",
    description: "The key is not removed from existing servers.",
    params: keyParam,
    answer: null,
  },
});

/** Operations on images that need the driver of servers. */
export const imageOperations = operations({
  createImage: {
    method: "POST",
    path: "/image",
    access: "server:write",
    summary: "Create an image from a server, or import one",
    description:
      "Send exactly one of `ServerID`, `Url` and `File`. From a server: the snapshot is queued behind the running actions of the server, and the identity of the guest is removed. An import is a qcow2 or raw file, which is checked and converted.",
    body: Type.Object({
      Name: name(),
      ServerID: optionalId({ description: "Server to create the image from." }),
      Url: optional(
        text({ maxLength: 2048, description: "HTTP or HTTPS URL of the image, not at a private address." }),
      ),
      File: optional(text({ minLength: 1, maxLength: 255, description: "Name of a file in the import folder." })),
      Sha256: optional(
        text({
          pattern: "^[0-9A-Fa-f]{64}$",
          "x-pattern-description": "64 hexadecimal digits",
          description: "SHA-256 of the file. Required with `Url`.",
        }),
      ),
      Family: optional(word(families, { description: "Family of an import. Default `Linux`." })),
      MinRAM: optional(integer(1, 1_048_576, { description: "Smallest memory for an import, in MB. Default 128." })),
      TechName: optional(
        text({
          minLength: 1,
          maxLength: 64,
          pattern: "^[A-Za-z0-9._-]*$",
          "x-pattern-description": "letters, digits, dots, underscores and hyphens",
          description: "Default: `Name`, other characters replaced by hyphens.",
        }),
      ),
      Labels: optional(Labels),
    }),
    answer: Image,
    etag: true,
    resultOperation: "readImage",
    errors: ["action_not_allowed", "queue_full", "quota_exceeded", "no_capacity", "engine_unavailable"],
  },
  deleteImage: {
    method: "DELETE",
    path: "/image/{id}",
    access: "server:write",
    summary: "Delete an image of the project",
    description: "Servers created from the image are not affected.",
    params: imageParam,
    answer: null,
    errors: ["stock_image"],
  },
});
