/** Commands that are no single operation: what they take, and the module of each, which is loaded when it runs. */
import type { Argument, Command, Flag } from "./model/commands.ts";
import type { Kind } from "./model/kinds.ts";
import { flag } from "./model/options.ts";
import { fieldsOf, kebab, operationOf, type Schema } from "./model/schema.ts";
import type { Run } from "./session.ts";

/** Modules by the words of the command. */
export const loaders: Readonly<Record<string, () => Promise<{ run: Run }>>> = {
  apply: () => import("./special/cloud.ts").then((m) => ({ run: m.apply })),
  "acme present": () => import("./special/acme.ts").then((m) => ({ run: m.present })),
  "acme cleanup": () => import("./special/acme.ts").then((m) => ({ run: m.cleanup })),
  "adapter httpreq": () => import("./special/httpreq.ts"),
  "adapter external-dns": () => import("./special/externaldns.ts"),
  completion: () => import("./special/completion.ts").then((m) => ({ run: m.script })),
  __complete: () => import("./special/completion.ts").then((m) => ({ run: m.complete })),
  "config check": () => import("./special/config.ts").then((m) => ({ run: m.check })),
  "config show": () => import("./special/config.ts").then((m) => ({ run: m.show })),
  console: () => import("./special/console.ts"),
  "context add": () => import("./special/context.ts").then((m) => ({ run: m.add })),
  "context list": () => import("./special/context.ts").then((m) => ({ run: m.list })),
  "context use": () => import("./special/context.ts").then((m) => ({ run: m.use })),
  "context remove": () => import("./special/context.ts").then((m) => ({ run: m.remove })),
  "dns import": () => import("./special/zonefile.ts").then((m) => ({ run: m.importFile })),
  "dns export": () => import("./special/zonefile.ts").then((m) => ({ run: m.exportFile })),
  "dns diff": () => import("./special/zonefile.ts").then((m) => ({ run: m.diff })),
  doctor: () => import("./special/doctor.ts"),
  events: () => import("./special/events.ts"),
  export: () => import("./special/cloud.ts").then((m) => ({ run: m.exportFile })),
  "firewall get": () => import("./special/parts.ts").then((m) => ({ run: m.firewall })),
  "image upload": () => import("./special/imageupload.ts"),
  init: () => import("./special/init.ts"),
  logs: () => import("./special/logs.ts"),
  plan: () => import("./special/cloud.ts").then((m) => ({ run: m.plan })),
  "project list": () => import("./special/parts.ts").then((m) => ({ run: m.projects })),
  "record list": () => import("./special/parts.ts").then((m) => ({ run: m.records })),
  ssh: () => import("./special/ssh.ts"),
  top: () => import("./special/top.ts"),
  "vpn config": () => import("./special/vpnconfig.ts"),
};

const argument = (name: string, kind: Kind | null, description: string, more: Partial<Argument> = {}): Argument => ({
  field: name.toLowerCase(),
  place: "option",
  schema: { type: "string" },
  kind,
  name,
  required: true,
  file: false,
  description,
  ...more,
});

const special = (
  words: string,
  summary: string,
  description: string,
  more: Partial<Pick<Command, "args" | "flags" | "examples" | "hidden" | "destroys" | "operation">> = {},
): Command => ({
  words: words.split(" "),
  summary,
  description,
  args: [],
  flags: [],
  operation: null,
  destroys: false,
  ...more,
});

const text: Schema = { type: "string" };
const yes: Schema = { type: "boolean" };
const count: Schema = { type: "integer", minimum: 1 };
const server = argument("SERVER", "server", "Name or id.");
const domain = argument("DOMAIN", "domain", "Name or id.");
const network = argument("NETWORK", "public-network", "Name or id.");
const file = argument("FILE", null, "A zone file (RFC 1035, section 5); `-` is standard input.");
const contextName = argument("NAME", null, "Name of the context.");

/** Returns the flag of a field of a new image. */
function imageFlag(field: string): Flag {
  const schema = fieldsOf(operationOf("createImage").body)[field] ?? text;
  const name = field === "Labels" ? "label" : kebab(field);
  return flag(name, schema, schema.description ?? "Label, as `KEY=VALUE`.", { field });
}

const cloudFile = flag("file", text, "The cloud file, in YAML or JSON; `-` is standard input.", { short: "f" });
const configFile = flag("file", text, "Read this settings file instead of the usual one.", { short: "f" });
const noPrompt = flag("yes", yes, "Do not prompt before the change.", { short: "y" });

const challenge = [
  argument("NAME", null, "Name of the record. Default: `_acme-challenge.` and `CERTBOT_DOMAIN`.", { required: false }),
  argument("VALUE", null, "Text of the record. Default: `CERTBOT_VALIDATION`.", { required: false }),
];
const listen = flag("listen", text, "Address and port. Default `127.0.0.1:8888`.");

/** Commands that are no single operation. */
export const specialCommands: readonly Command[] = [
  special(
    "plan",
    "Compare a cloud file with the installation",
    "Shows what `brume apply` would do, as a diff, and changes nothing. Exit code 2: there is something to do. Exit code 0: there is nothing to do.",
    { flags: [cloudFile], examples: ["brume plan -f cloud.yaml"] },
  ),
  special(
    "apply",
    "Create and change what a cloud file describes",
    "Shows the difference, prompts, and carries it out. A second run does nothing. After a failure the next run continues. Only objects with the label of the file are deleted.",
    {
      flags: [
        cloudFile,
        noPrompt,
        flag("schema", yes, "Print the JSON Schema of the file, for editors."),
        flag(
          "timeout",
          { ...count, maximum: 86_400 },
          "Wait at most this number of seconds for each change. Default 900.",
        ),
      ],
      examples: ["brume apply -f cloud.yaml", "brume apply --schema > cloud.schema.json"],
    },
  ),
  special(
    "export",
    "Write the installation as a cloud file",
    "Contains networks, servers and domains of the project, without secrets and without user data. `brume plan` with this file has nothing to do.",
    {
      flags: [
        flag("file", text, "Write to this file. Default: standard output.", { short: "f" }),
        flag("label", text, "Only what `brume apply` has made from the file with this `Label`."),
        noPrompt,
      ],
      examples: ["brume export > cloud.yaml"],
    },
  ),
  special(
    "acme present",
    "Create the TXT record of an ACME challenge",
    "For the DNS-01 challenge (RFC 8555): a hook for certbot and others. A token that may only change `_acme-challenge` records suffices.",
    {
      args: challenge,
      examples: [
        "brume acme present _acme-challenge.example.com LHDhK3oGRvkiefQnx7OOczTY5Tic_xZ6HcMOc_gmtoM",
        "certbot certonly --manual --preferred-challenges dns --manual-auth-hook 'brume acme present' --manual-cleanup-hook 'brume acme cleanup' -d example.com",
      ],
    },
  ),
  special(
    "acme cleanup",
    "Delete the TXT record of an ACME challenge",
    "If the record does not exist, nothing happens.",
    {
      args: challenge,
    },
  ),
  special(
    "adapter httpreq",
    "Serve lego's provider `httpreq`",
    "Answers `POST /present` and `POST /cleanup`, also in the mode `RAW`. The password of a request, if it has one, is the token that is used; without a loopback address every request needs one.",
    {
      flags: [listen],
      examples: ["HTTPREQ_ENDPOINT=http://127.0.0.1:8888 lego --dns httpreq -d example.com run"],
    },
  ),
  special(
    "adapter external-dns",
    "Serve the webhook provider of ExternalDNS",
    "Answers `GET /`, `GET /records`, `POST /records`, `POST /adjustendpoints` and `GET /healthz` for the domains that the token sees. Changes of a domain are applied together or not at all.",
    { flags: [listen], examples: ["external-dns --provider=webhook --webhook-provider-url=http://127.0.0.1:8888"] },
  ),
  special(
    "context add",
    "Add an installation, or replace it",
    "Prompts for the token, or reads it from standard input. After `--`, a program with arguments is stored that prints the token instead. The first context becomes the current one.",
    {
      args: [contextName],
      flags: [flag("url", text, "URL of the API, such as `https://cloud.example.com`.", { required: true })],
      examples: [
        "brume context add work --url https://cloud.example.com",
        "brume context add work --url https://cloud.example.com -- pass show brume/work",
      ],
    },
  ),
  special("context list", "List the installations", "The local installation needs no context. Tokens are never shown."),
  special("context use", "Make an installation the current one", "`local` is the installation on this host.", {
    args: [contextName],
  }),
  special("context remove", "Remove an installation from the list", "", { args: [contextName] }),
  special(
    "completion",
    "Print the completion of a shell",
    "It completes commands, flags, and names of existing objects.",
    {
      args: [argument("SHELL", null, "`bash`, `zsh` or `fish`.")],
      examples: ["source <(brume completion bash)", "brume completion fish > ~/.config/fish/completions/brume.fish"],
    },
  ),
  special("__complete", "Print the completions of a line", "", {
    args: [argument("WORD", null, "", { required: false, rest: true })],
    hidden: true,
  }),
  special(
    "console",
    "Open the serial console of a server",
    "Ctrl-] ends it. It works without network and SSH in the guest.",
    {
      args: [server],
      flags: [
        flag("vnc", yes, "Print the WebSocket URL of the screen (RFB protocol), for a VNC client such as noVNC."),
      ],
    },
  ),
  special(
    "dns import",
    "Import a zone file",
    "Creates the domain if it does not exist. Records that the file does not contain stay, unless `--replace` removes them.",
    {
      args: [argument("DOMAIN", "domain", "Name or id of the domain, or the name of a new one."), file],
      flags: [
        flag("replace", yes, "Remove records that the file does not contain. Prompts."),
        flag("dry-run", yes, "Validate only; change nothing."),
        flag("yes", yes, "Do not prompt before the change.", { short: "y" }),
      ],
    },
  ),
  special("dns export", "Print a domain as a zone file", "", { args: [domain] }),
  special(
    "dns diff",
    "Compare a domain with a zone file",
    "Prints what `dns import --replace` would remove (`-`) and add (`+`). Exit code 1: they differ.",
    {
      args: [domain, file],
    },
  ),
  special(
    "doctor",
    "Check the installation and this computer",
    "Checks the service, its parts, engines, certificate and clock, the token, the port of the name server, a pending upgrade, and programs that this command line uses. Exit code 1: there is a problem.",
  ),
  special(
    "events",
    "Print events",
    "Without `--follow` prints the last 50, or all after `--after`. A stream resumes by itself after a lost connection.",
    {
      flags: [
        flag("follow", yes, "Print new events until Ctrl-C."),
        flag("type", text, "Event types, separated by commas; `*` at the end matches any ending."),
        flag("resource", text, "Objects such as `domain:3`, separated by commas."),
        flag("after", { type: "integer", minimum: 0 }, "Only events after this event id."),
      ],
      examples: ["brume events --follow --type 'server.*,action.*'"],
    },
  ),
  special(
    "image upload",
    "Upload a disk image",
    "Sends a qcow2 or raw disk of this computer, which is then checked and converted. After an interruption, the same command continues where the upload ended.",
    {
      args: [argument("FILE", null, "The disk image.")],
      flags: [
        flag("name", text, "Name of the image. Default: the name of the file.", { field: "Name" }),
        ...["Family", "MinRAM", "TechName", "Labels"].map((field) => imageFlag(field)),
        flag(
          "sha256",
          text,
          "SHA-256 that the file must have. It is compared before the upload; the host compares it again.",
        ),
      ],
      operation: "writeImageContent",
      examples: ["brume image upload disk.qcow2 --name golden"],
    },
  ),
  special(
    "init",
    "Set up the service of this host",
    "Prompts for addresses, pools, TLS, the name of the name server and the token, and writes the settings file and the systemd unit. Every answer can be given as a flag. The service validates the file before it is written.",
    {
      flags: [
        flag("listen", text, "Address and port of the API. Default `127.0.0.1:8080`."),
        flag("tls-domain", text, "Name of the API, for a certificate that the service orders and renews."),
        flag(
          "tls-redirect",
          text,
          "Address and port of a plain HTTP server that redirects to HTTPS, such as `0.0.0.0:80`.",
        ),
        flag("tls-cert", text, "PEM file of the certificate of the API."),
        flag("tls-key", text, "PEM file of its key."),
        flag(
          "dns-listen",
          text,
          "Address and port of the name server. Default as root: port 53 of the first address of the host.",
        ),
        flag("dns-names", text, "Names of the name servers, separated by commas."),
        flag("public-address", text, "Public IPv4 address, if a router translates it."),
        flag("public-pool", text, "Address blocks of public networks. Default `10.64.0.0/16`."),
        flag("public-pool6", text, "IPv6 block of public networks, /56 or larger."),
        flag("data", text, "Folder of the data. Default as root: `/var/lib/brume`."),
        flag("token", text, "Value of the first token. Default: the service creates one."),
        flag(
          "file",
          text,
          "Path of the settings file. Default as root: `/etc/brume/brume.toml`; otherwise `brume.toml` of the clone.",
          { short: "f" },
        ),
        flag(
          "unit",
          text,
          "Path of the systemd unit; `none` writes none. Default as root: `/etc/systemd/system/brume.service`, or `none` if the Debian package has the unit.",
        ),
        flag(
          "dns-only",
          yes,
          "The unit runs only the name server and the API, without root. Servers and networks are simulated.",
        ),
        flag("yes", yes, "Do not prompt: what is not given gets its default.", { short: "y" }),
      ],
      examples: ["brume init", "brume init --yes --dns-listen 192.0.2.53:53 --dns-names ns1.example.com"],
    },
  ),
  special(
    "config check",
    "Validate the settings of the service",
    "Reads the settings file and the variables as the service does.",
    {
      flags: [configFile],
    },
  ),
  special("config show", "Show the settings of the service", "Secrets are hidden.", {
    flags: [
      configFile,
      flag("source", yes, "Show whether a value is the default, of a variable, or of which line of the file."),
    ],
  }),
  special("firewall get", "Show the firewall of a public network", "With counters of each rule.", { args: [network] }),
  special("logs", "Print the serial log of a server", "", {
    args: [server],
    flags: [
      flag("tail", { ...count, maximum: 1_000_000 }, "Only this number of last lines."),
      flag("previous", yes, "The log of the previous boot."),
      flag("follow", yes, "Print new lines until Ctrl-C."),
    ],
  }),
  special(
    "project list",
    "List projects",
    "All projects for a token with `account:admin`, else the project of the token.",
  ),
  special("record list", "List the records of a domain", "", {
    args: [domain],
    flags: [flag("type", text, "Only records of these types, separated by commas.")],
  }),
  special(
    "ssh",
    "Log in to a server with SSH",
    "Runs the program `ssh` with the address and the user of the server. What follows `--` is the command to run in the guest.",
    {
      args: [server],
      flags: [
        flag("user", text, "User in the guest. Default: the administrator of the server."),
        flag("port", { ...count, maximum: 65_535 }, "Port. Default 22.", { short: "p" }),
        flag("identity", text, "File of the private key.", { short: "i" }),
      ],
      examples: ["brume ssh web-1", "brume ssh web-1 -- uptime"],
    },
  ),
  special("top", "Show the load of the servers", "Refreshes until Ctrl-C; without a terminal it prints once.", {
    flags: [
      flag("once", yes, "Print once."),
      flag("interval", { ...count, maximum: 3600 }, "Seconds between two reads. Default 2."),
    ],
  }),
  special(
    "vpn config",
    "Print the peer configuration of a tunnel",
    "With placeholders instead of secrets, unless `--issue` is given.",
    {
      args: [
        network,
        argument("TUNNEL", "tunnel", "Name or id. Default: the only tunnel of the network.", { required: false }),
      ],
      flags: [
        flag(
          "issue",
          yes,
          "With secrets, ready to import. For WireGuard this creates a new key: a connected peer is disconnected. Prompts.",
        ),
        flag("qr", yes, "Print a QR code for a phone."),
        flag(
          "peer",
          { type: "string", enum: ["strongswan", "libreswan", "mikrotik", "cisco", "fortigate", "wg-quick", "wg"] },
          "Form of the configuration. Default: `wg-quick` or `strongswan`.",
        ),
        flag("yes", yes, "Do not prompt before the change.", { short: "y" }),
      ],
    },
  ),
];
