/** Images, locations and SSH keys: what servers are created from. */
import type { Static } from "typebox";
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
  object,
  optional,
  optionalId,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { forms } from "./form.ts";
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

/** `Available`: in the catalog, and downloaded when the first server is created from it. `Uploading`: waits for its content. */
export const imageStates = ["Available", "New", "Active", "Failed", "Uploading"] as const;
/** A value of `imageStates`. */
export type ImageState = (typeof imageStates)[number];

/** Most bytes of an uploaded file: 4 TiB. */
export const mostUpload = 2 ** 42;

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
export const SshKey = object("SshKey", "A public SSH key.", {
  ID: id({ description: "Id of the key." }),
  Title: name({ description: "Title of the key, unique in the project." }),
  PublicKey: text({ description: "The base64 part of the OpenSSH line." }),
  IsActive: boolean({ description: "Always `true`." }),
  Type: word(sshKeyTypes, { description: "Key type of OpenSSH." }),
  Comment: text({ description: "Comment of the OpenSSH line; may be empty." }),
  Fingerprint: text({ description: "`SHA256:` fingerprint as printed by `ssh-keygen -l`." }),
  DateCreate: date({ description: "When the key was created." }),
  Labels,
});
/** TypeScript type of this schema. */
export type SshKey = Static<typeof SshKey>;

const ImageIdentity = object(
  "ImageIdentity",
  "Whether the identity of the guest was removed. `null`: the image was not created from a server, or is not ready.",
  {
    Removed: boolean({
      description:
        "`true`: SSH host keys, machine id, password hashes, authorized keys, logs, DHCP and cloud-init state are removed. Backups keep them.",
    }),
    Detail: text({ description: "Why nothing or not everything was removed; otherwise empty." }),
  },
);

const ImageUpload = object("ImageUpload", "An upload that is not complete. `null`: the image waits for no content.", {
  Size: integer(1, mostUpload, { description: "Bytes of the file." }),
  Received: integer(0, mostUpload, { description: "Bytes that are stored: the next content begins here." }),
  Sha256: nullable(text({ description: "SHA-256 that the file must have, in lower case. `null`: not checked." })),
  Expires: date({ description: "When the image is deleted, unless more content arrives." }),
});

/** A guest image. */
export const Image = object("Image", "A guest image.", {
  ID: id({ description: "Id of the image." }),
  Name: name({ description: "Name of the image." }),
  DisplayName: text({ description: "Readable name." }),
  DCLocation: nullable(text({ description: "`TechTitle` of the location. `null`: every location." })),
  Hdd: integer(1, 4096, { description: "Smallest disk of a server, in GB." }),
  Family: word(families, { description: "Operating system family." }),
  IsAvailableISP: boolean({ description: "Always `false`; existing clients read it." }),
  IsISPLiteEnabled: boolean({ description: "Always `false`; existing clients read it." }),
  IsISPBusinessEnabled: boolean({ description: "Always `false`; existing clients read it." }),
  Type: word(imageTypes, {
    description:
      "`GoldServer`: image of the operator. `Client`: image of the project. `Backup`: daily backup of a server.",
  }),
  LinkedSshKeys: list(SshKey, { maxItems: 0, description: "Always empty; existing clients read it." }),
  OperatingSystemType: text({ description: "Operating system, such as `Debian`, or the family." }),
  TechName: text({ description: "Technical name: 1-64 letters, digits, dots, underscores and hyphens." }),
  State: word(imageStates, {
    description:
      "`Available`: downloaded when the first server is created from it. `New`: being downloaded or created. `Active`: ready. `Failed`: could not be created; see `Error`. `Uploading`: waits for its content; see `Upload`.",
  }),
  MinRAM: integer(1, 1_048_576, { description: "Smallest memory of a server, in MB." }),
  DateCreate: date({ description: "When the image was created." }),
  Error: nullable(WorkError),
  ServerID: nullable(
    id({ description: "Server from which the image was created; it may be deleted. `null`: an import." }),
  ),
  Progress: integer(0, 100, { description: "Percent of the image that is stored." }),
  Identity: nullable(ImageIdentity),
  Upload: nullable(ImageUpload),
  Labels,
});
/** TypeScript type of this schema. */
export type Image = Static<typeof Image>;

const amount = <const D extends string>(description: D) => integer(0, maxId, { description });

/** A location with its capacity. */
export const Location = object("Location", "A location with its capacity.", {
  ID: id({ description: "Id of the location." }),
  Title: text({ description: "Name of the location." }),
  TechTitle: text({ description: "Name of the location, as requests use it." }),
  ShortTitle: text({ description: "Name of the location." }),
  Country: text({ description: "Always empty; existing clients read it." }),
  City: text({ description: "Always empty; existing clients read it." }),
  IsEnableLowPool: boolean({ description: "Always `true`; existing clients read it." }),
  IsEnableHighPool: boolean({ description: "Always `true`; existing clients read it." }),
  IsEnableBackup: boolean({ description: "Always `true`; existing clients read it." }),
  IsEnableIpV6: boolean({ description: "`true`: the operator has configured an IPv6 pool." }),
  IsOnlyForAdmins: boolean({ description: "Always `false`; existing clients read it." }),
  HiddenToNewProjects: boolean({ description: "Always `false`; existing clients read it." }),
  IsFirewallEnabled: boolean({ description: "Always `true`; existing clients read it." }),
  Engines: object("Engines", "What drives servers, networks and name server.", {
    Machine: word(["host", "sim"], { description: "`host`: real VMs. `sim`: simulated; no VM runs." }),
    Router: word(["host", "sim"], { description: "`host`: real networks. `sim`: simulated; no packet flows." }),
    NameServer: word(["builtin"], { description: "`builtin`: the name server of the service." }),
  }),
  Capacity: object("Capacity", "Capacity of the host, overcommit included. A powered-off server keeps its share.", {
    CPU: amount("Virtual CPUs in total."),
    RAM: amount("Memory in total, in MB."),
    HDD: amount("Disk space in total, in GB."),
    FreeCPU: amount("Free virtual CPUs."),
    FreeRAM: amount("Free memory, in MB."),
    FreeHDD: amount("Free disk space, in GB."),
  }),
});
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
    description: "Includes images that are downloaded when the first server is created from them, and backups.",
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
    description: "Returns an image of the operator or of the project.",
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
    description: "Returns the SSH keys of the project, by id.",
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
    body: object("CreateSshKeyRequest", "A new SSH key.", {
      Title: name({ "x-also": ["Name"], description: "Title of the key, unique in the project." }),
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
    description: "Returns the key with its fingerprint.",
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
    summary: "Create an image from a server, or import or upload one",
    description:
      "Send exactly one of `ServerID`, `Url`, `File` and `Size`. From a server: the snapshot is queued behind the running actions of the server, and the identity of the guest is removed. An import is a qcow2 or raw file, which is checked and converted. An upload with `Size` is `Uploading` until `writeImageContent` has sent its content.",
    body: object(
      "CreateImageRequest",
      "Where a new image comes from.",
      {
        Name: name({ description: "Name of the image." }),
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
        Size: optional(integer(1, mostUpload, { description: "Bytes of a file to upload." })),
        Family: optional(word(families, { description: "Family of an import. Default `Linux`." })),
        MinRAM: optional(integer(1, 1_048_576, { description: "Smallest memory for an import, in MB. Default 128." })),
        TechName: optional(
          text({
            minLength: 1,
            maxLength: 64,
            pattern: "^[A-Za-z0-9._-]*$",
            "x-pattern-description": "letters, digits, dots, underscores and hyphens",
            description: "Technical name. Default: `Name`, other characters replaced by hyphens.",
          }),
        ),
        Labels: optional(Labels),
      },
      forms([
        {
          title: "CreateImageFromServer",
          description: "An image of the disk of a server.",
          needs: ["ServerID"],
          without: ["Url", "File", "Size", "Sha256", "Family", "MinRAM"],
        },
        {
          title: "ImportImageFromUrl",
          description: "An image from an HTTP server.",
          needs: ["Url", "Sha256"],
          without: ["ServerID", "File", "Size"],
        },
        {
          title: "ImportImageFromFile",
          description: "An image from a file in the import folder.",
          needs: ["File"],
          without: ["ServerID", "Url", "Size"],
        },
        {
          title: "UploadImage",
          description: "An image whose content the client sends.",
          needs: ["Size"],
          without: ["ServerID", "Url", "File"],
        },
      ]),
    ),
    answer: Image,
    etag: true,
    resultOperation: "readImage",
    errors: ["action_not_allowed", "queue_full", "quota_exceeded", "no_capacity", "engine_unavailable"],
  },
  writeImageContent: {
    method: "PUT",
    path: "/image/{id}/content",
    access: "server:write",
    summary: "Send content of an image that is being uploaded",
    description:
      "Content begins at `Upload.Received` of the image, and may be the whole rest or a part of it. What the response shows as received survives any failure. After an interruption, read the image and continue at `Received`. With the last byte, the file is checked and converted. A second request for the same image ends the first.",
    params: imageParam,
    content: true,
    answer: Image,
    etag: true,
    resultOperation: "readImage",
    errors: ["upload_conflict", "no_capacity", "engine_unavailable"],
  },
  deleteImage: {
    method: "DELETE",
    path: "/image/{id}",
    access: "server:write",
    summary: "Delete an image of the project",
    description: "Servers created from the image are not affected. Ends an upload.",
    params: imageParam,
    answer: null,
    errors: ["stock_image"],
  },
});
