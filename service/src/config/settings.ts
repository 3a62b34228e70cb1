/**
 * The table of all settings: name of the variable, default, meaning. The reader of the settings, the settings file, the commands
 * `brume config` and the reference in docs/operate.md derive from it.
 */

/** Default, meaning and visibility of a value that the operator can choose. */
export interface Setting {
  /** Default. Absent: the setting has no value by default. */
  readonly value?: string;
  /** What applies without a value, for the reference. */
  readonly absent?: string;
  /** The value is never printed. */
  readonly secret?: true;
  /** A value that is set is a path of the host, which clients of the API do not see. */
  readonly path?: true;
  /** Unit of the value. */
  readonly unit?: string;
  /** The value is an integer from the first to the second number. */
  readonly range?: readonly [least: number, most: number];
  readonly meaning: string;
}

const table = {
  BRUME_LISTEN: {
    value: "127.0.0.1:8080",
    meaning: "address and port of the API; a port alone means 127.0.0.1",
  },
  BRUME_TLS_CERT: {
    path: true,
    meaning:
      "PEM file of the certificate; with `BRUME_TLS_KEY` the API uses HTTPS. The files are read again when they change",
  },
  BRUME_TLS_KEY: {
    path: true,
    meaning: "PEM file of the key of `BRUME_TLS_CERT`",
  },
  BRUME_TLS_DOMAIN: {
    meaning:
      "names of the API, such as `cloud.example.com`. The API uses HTTPS, with a certificate that it orders from `BRUME_ACME_DIRECTORY` and renews, and you agree to the terms of that authority. See [certificates.md](certificates.md#the-api-itself)",
  },
  BRUME_TLS_CONTACT: {
    meaning: "mail address of the account at the authority",
  },
  BRUME_TLS_REDIRECT: {
    meaning:
      "address and port, such as `0.0.0.0:80`, of a plain HTTP server that redirects to HTTPS and answers HTTP-01 challenges",
  },
  BRUME_ACME_DIRECTORY: {
    value: "https://acme-v02.api.letsencrypt.org/directory",
    meaning: "ACME directory of the authority for `BRUME_TLS_DOMAIN`",
  },
  BRUME_DATA: {
    value: "data",
    path: true,
    meaning: "data folder; created with mode 700. See [Files and users](#files-and-users)",
  },
  BRUME_DATABASE: {
    secret: true,
    meaning: "`postgres://…`; without it SQLite in the data folder",
  },
  BRUME_TOKEN: {
    absent: "file `token`",
    secret: true,
    meaning: "value of token 1, 64 lower-case hexadecimal characters",
  },
  BRUME_KEY: {
    absent: "file `key`",
    secret: true,
    meaning: "key that encrypts secrets at rest, 64 lower-case hexadecimal characters",
  },
  BRUME_LOG: {
    value: "info",
    meaning: "log level `error`, `warn`, `info` or `debug`; JSON lines on standard error",
  },
  BRUME_LENIENT_HTTP: {
    value: "0",
    range: [0, 1],
    meaning: "`1`: header lines may end with a bare LF",
  },
  BRUME_DNS_LISTEN: {
    value: "127.0.0.1:5353",
    meaning: "address and port of the name server, UDP and TCP; a port alone means 127.0.0.1",
  },
  BRUME_DNS_NAMES: {
    value: "ns1.brume.internal",
    meaning:
      "names in the automatic NS set, 1 to 13. A domain counts as delegated when its parent zone names these. With a hidden primary, set the names of the public secondaries",
  },
  BRUME_DNS_RATE_LIMIT: {
    value: "200",
    unit: "responses/s",
    range: [0, 1_000_000],
    meaning:
      "limit of equal responses to one /24 or /56; further ones are dropped or truncated. `0`: no limit. Loopback addresses have no limit",
  },
  BRUME_DNS_QUERY_LIMIT: {
    value: "20000",
    unit: "queries/s",
    range: [0, 10_000_000],
    meaning:
      "limit of queries over UDP from one /24 or /56. Each 16th further query gets a truncated response, so that a real client can retry over TCP. The others are dropped. `0`: no limit. Loopback addresses have no limit",
  },
  BRUME_DNS_TRANSFER: {
    meaning: "addresses and blocks that may transfer zones",
  },
  BRUME_DNS_TRANSFER_KEYS: {
    secret: true,
    meaning:
      "TSIG keys that may transfer zones, `ALGORITHM:NAME:BASE64`. `ALGORITHM` is one of `hmac-sha1`, `hmac-sha256`, `hmac-sha384` and `hmac-sha512`. To limit a key to some zones, append them: `hmac-sha256:NAME:BASE64:example.com+example.org+project/7` (zone names, and all zones of a project)",
  },
  BRUME_DNS_NOTIFY: {
    meaning:
      "secondaries that receive NOTIFY, `ADDRESS` or `ADDRESS:PORT`. With a key name and `@` in front (`transfer@192.0.2.54`), NOTIFY is signed with that key of `BRUME_DNS_TRANSFER_KEYS` and sent only for zones of that key",
  },
  BRUME_DNS_CATALOG: {
    meaning: "name of a catalog zone that lists all zones for secondaries, such as `catalog.brume.invalid`",
  },
  BRUME_DNS_RESOLVERS: {
    absent: "the host's",
    meaning:
      "resolvers for three lookups: the name servers of a domain's parent zone (delegation check), the TXT records that prove claims, and the present name servers for `Migrate`. `,` for none",
  },
  BRUME_LOCATIONS: {
    value: "Local",
    meaning: "titles of locations. All are names for this one host; the first is the default",
  },
  BRUME_PUBLIC_POOL: {
    value: "10.64.0.0/16",
    meaning:
      "address blocks of /8 to /28 for public networks and for the addresses of their edge routers. Private blocks are translated to the host's address when packets leave the host (`BRUME_NAT`)",
  },
  BRUME_PUBLIC_POOL6: {
    meaning:
      "IPv6 block of /56 or larger. Each public network and the shared network then gets a /64 beside IPv4. Existing networks get theirs at the next start of the service, existing servers at their next start. **There is no NAT for IPv6: a server without a firewall can be reached from every network that routes to the block**",
  },
  BRUME_SHARED_POOL: {
    absent: "`10.63.0.0/16`",
    meaning:
      "block of /8 to /29 for the shared network, one per location. By default further locations get the next blocks outside the public pools: `10.65.0.0/16`, …",
  },
  BRUME_NAT: {
    value: "always",
    meaning:
      "when packets of a network with private addresses leave the host with the host's address. `always`; `outside-private`: only to destinations that are not private (private: `10.0.0.0/8`, `100.64.0.0/10`, `169.254.0.0/16`, `172.16.0.0/12`, `192.168.0.0/16`), for pools that the private networks around the host can route to; `never`: the pool is routed everywhere. Networks with public addresses are never translated",
  },
  BRUME_PUBLIC_ADDRESS: {
    absent: "the host's",
    meaning:
      "public IPv4 address of the host, if another router translates it again. Peer configurations of tunnels contain this address. That router must forward the UDP ports below",
  },
  BRUME_WIREGUARD_PORT: {
    value: "51820",
    range: [1024, 65_535],
    meaning: "UDP port of the first network with WireGuard; each further network gets the next free port",
  },
  BRUME_GUEST_DNS: {
    meaning:
      "name servers that edge routers forward guest queries to. Without it, guests receive the host's resolvers, except those that guests cannot reach",
  },
  BRUME_GUEST_REACH: {
    meaning:
      "addresses and blocks of the host, or link-local ones, that guests may reach; see [What guests reach](#what-guests-reach-of-the-host)",
  },
  BRUME_WEBHOOK_ALLOW: {
    meaning: "addresses and blocks that webhooks may call in addition to public ones",
  },
  BRUME_NETWORK_CONNECTIONS: {
    value: "65536",
    unit: "connections",
    range: [100, 10_000_000],
    meaning:
      "limit of connections per network, at most a quarter of the host's table; see [Limits of a guest](#limits-of-a-guest)",
  },
  BRUME_SERVER_CONNECTIONS: {
    value: "16384",
    unit: "connections",
    range: [100, 10_000_000],
    meaning:
      "limit of live connections per server in one network, IPv4 and IPv6 together; at most a quarter of the network's",
  },
  BRUME_SERVER_PACKETS: {
    value: "200000",
    unit: "packets/s",
    range: [100, 100_000_000],
    meaning: "limit of packets that a server sends into one network",
  },
  BRUME_BACKUPS: {
    path: true,
    meaning: "an existing folder for daily backups, for example on another disk. Default: `images/` in the data folder",
  },
  BRUME_UPLOAD_HOURS: {
    value: "24",
    unit: "hours",
    range: [1, 168],
    meaning: "time that an upload of an image waits for more content; then the image is deleted with what has arrived",
  },
  BRUME_CPU_OVERCOMMIT: {
    value: "8",
    unit: "vCPUs per core",
    range: [1, 64],
    meaning: "CPU overcommit ratio: vCPUs that may be allocated per core of the host",
  },
  BRUME_DISK_IOPS: {
    value: "20000",
    unit: "operations/s",
    range: [0, 100_000_000],
    meaning:
      "limit of reads and writes of a server's disk; `0`: no limit. A change applies to running servers at the next start of the service",
  },
  BRUME_DISK_BANDWIDTH: {
    value: "1000",
    unit: "MB/s",
    range: [0, 1_000_000],
    meaning: "limit of what a server's disk reads and writes; `0`: no limit. Applies in the same way",
  },
  BRUME_DISK_LOW: {
    value: "1000",
    unit: "MB",
    range: [0, 100_000_000],
    meaning:
      "if less is free on the disk of the data folder, `/readyz`, `/metrics` and the log report a low disk; `0`: never",
  },
  BRUME_KEEP: {
    absent: "see [What is kept](#what-is-kept)",
    meaning: "retention: `NAME:DAYS/COUNT`, such as `audit:730/5000000,task:30/20000`",
  },
  BRUME_PROCESSES: {
    value: "2",
    range: [1, 2],
    meaning:
      "as root, with real engines: `2`: an agent that drives the host, and a control plane that serves clients as the user `brume` without rights (see [security.md](security.md)). `1`: one process as root. Without root and with `BRUME_SIMULATE` it is always one process",
  },
  BRUME_SIMULATE: {
    value: "0",
    range: [0, 1],
    meaning:
      "`1`: simulate servers and networks. No guest runs and no packet flows; the API behaves the same. DNS is real",
  },
  BRUME_REQUIRE_ENGINES: {
    value: "0",
    range: [0, 1],
    meaning:
      "`1`: the service starts only if VMs and networks are real. Without it, a host that cannot run them gets simulated ones",
  },
  BRUME_SIMULATED_HOST: {
    value: "64/1024/65536",
    meaning: "capacity of the simulated host: cores, RAM in GB and disk in GB",
  },
} as const satisfies Readonly<Record<string, Setting>>;

type Table = typeof table;
/** Names of the variables. */
export type SettingName = keyof Table;
/** Names of the settings that are integers. */
export type IntegerName = {
  [N in SettingName]: Table[N] extends { readonly range: readonly number[] } ? N : never;
}[SettingName];
/** Names of the settings that have a default. */
export type DefaultName = { [N in SettingName]: Table[N] extends { readonly value: string } ? N : never }[SettingName];

/** Settings by the name of their variable. */
export const settings: Readonly<Record<SettingName, Setting>> = table;
/** All names, in the order of the reference. */
export const settingNames = Object.keys(table) as SettingName[];

/** Returns the key of the settings file: `BRUME_DNS_LISTEN` is `dns_listen`. */
export const keyOf = (name: string): string => name.replace(/^BRUME_/, "").toLowerCase();

/** Returns the meaning with the range. A setting with two values has no range: its meaning explains both. */
export function describeSetting(name: SettingName): string {
  const { meaning, range: [least, most] = [0, 1] } = settings[name];
  const show = (limit: number) => limit.toLocaleString("en", { useGrouping: limit > 65_535 });
  return most - least === 1 ? meaning : `${meaning}. Range: ${show(least)} to ${show(most)}`;
}

/** Returns the table of the reference in Markdown. */
export function renderSettings(): string {
  const row = (name: SettingName) => {
    const { value, absent = "none", unit } = settings[name];
    const shown = value === undefined ? absent : `\`${value}\``;
    return `| \`${name}\` | ${unit === undefined ? shown : `${shown} ${unit}`} | ${describeSetting(name)} |`;
  };
  return ["| setting | default | meaning |", "|---|---|---|", ...settingNames.map(row)].join("\n");
}
