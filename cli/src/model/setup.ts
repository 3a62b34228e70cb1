/** The texts that `brume init` writes: the settings file and the systemd unit. */

/** Settings by key of the file. An empty text leaves the default. */
export type SettingTexts = Readonly<Record<string, string>>;

/** Returns a text as a TOML string (toml.io, "basic strings"). */
const quote = (text: string): string =>
  `"${text.replaceAll(/["\\\p{Cc}]/gu, (one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`)}"`;

/** Returns the settings file. `comments`: what each key means. */
export function settingsFile(settings: SettingTexts, comments: Readonly<Record<string, string>>): string {
  const lines = Object.entries(settings)
    .filter(([, text]) => text !== "")
    .flatMap(([key, text]) => [`# ${comments[key] ?? key}`, `${key} = ${quote(text)}`, ""]);
  return [
    "# Settings of Brume. brume config check validates this file, and brume config show lists all settings.",
    "",
    ...lines,
  ].join("\n");
}

/** What a unit needs to know. */
export interface UnitOptions {
  /** Folder of the installation, program of Node, and path of the settings file. */
  readonly installation: string;
  readonly node: string;
  readonly settings: string;
  /** Only the name server: without rights of root. */
  readonly dnsOnly: boolean;
}

/** Returns a path as a word of a unit (systemd.syntax(7)): `%` begins a specifier, blanks end a word. */
const word = (text: string): string => {
  const escaped = text.replaceAll("%", "%%").replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return /[\s"'\\;]/.test(text) ? `"${escaped}"` : escaped;
};

/** Rights of a service that only answers DNS queries and API requests. */
const confined = [
  "DynamicUser=false",
  "User=brume",
  "StateDirectory=brume",
  "AmbientCapabilities=CAP_NET_BIND_SERVICE",
  "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
  "NoNewPrivileges=true",
  "ProtectSystem=strict",
  "ProtectHome=read-only",
  "PrivateTmp=true",
  "PrivateDevices=true",
  "ProtectKernelModules=true",
  "ProtectKernelTunables=true",
  "ProtectControlGroups=true",
  "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
];

/** Returns the systemd unit. */
export function unitFile({ installation, node, settings, dnsOnly }: UnitOptions): string {
  const [read, own] = dnsOnly
    ? [`LoadCredential=brume.toml:${word(settings)}\nEnvironment=BRUME_CONFIG=%d/brume.toml BRUME_SIMULATE=1`, confined]
    : [
        `Environment=${word(`BRUME_CONFIG=${settings}`)} BRUME_REQUIRE_ENGINES=1`,
        ["# VMs and tunnels continue while the service is stopped.", "KillMode=process"],
      ];
  return [
    "[Unit]",
    `Description=Brume${dnsOnly ? ", name server only" : ""}`,
    "Wants=network-online.target",
    "After=network-online.target",
    "",
    "[Service]",
    "Type=exec",
    `WorkingDirectory=${installation.replaceAll("%", "%%")}`,
    read,
    `ExecStart=${word(node)} service/src/main.ts`,
    ...own,
    "Restart=on-failure",
    "TimeoutStopSec=25",
    "",
    "[Install]",
    "WantedBy=multi-user.target",
    "",
  ].join("\n");
}
