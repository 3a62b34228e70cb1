/** Columns of the tables, by the title of the object in the contract. Objects without a row here show their plain fields. */

/** A column: header, and the field or a function of the object. */
export interface Column {
  readonly header: string;
  readonly value: string | ((row: Row) => unknown);
  /** Only with `--output wide`. */
  readonly wide?: boolean;
}

/** An object of a response. */
export type Row = Readonly<Record<string, unknown>>;

/** Returns a text, or a number or boolean as text; empty for everything else. */
export const textOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";

/** Columns from a text: `ID NAME=Name STATE=State`; those after `|` are wide. */
function columns(text: string, more: Readonly<Record<string, (row: Row) => unknown>> = {}): Column[] {
  const [narrow = "", wide = ""] = text.split("|");
  const read = (part: string, isWide: boolean) =>
    part
      .split(/\s+/)
      .filter((one) => one !== "")
      .map((one): Column => {
        const [header = "", field = header] = one.split("=");
        return { header: header.replaceAll("_", " "), value: more[header] ?? field, ...(isWide && { wide: true }) };
      });
  return [...read(narrow, false), ...read(wide, true)];
}

const count = (field: string) => (row: Row) => (Array.isArray(row[field]) ? (row[field] as unknown[]).length : null);
const inside = (outer: string, inner: string) => (row: Row) => (row[outer] as Row | null | undefined)?.[inner];

/** Returns the value of a record as a zone file shows it, without owner, TTL, class and type. */
export function recordValue(row: Row): string {
  const line = textOf(row["CanonicalDescription"]);
  const type = textOf(row["TypeRecord"]);
  const at = line.indexOf(` ${type} `);
  return at < 0 ? line : line.slice(at + type.length + 2);
}

/** Columns by title. */
export const columnsOf: Readonly<Record<string, readonly Column[]>> = {
  Server: columns(
    "ID NAME=Name STATE=State POWER IP CPU RAM HDD IMAGE=Image | HOST=HostName LOCATION=DCLocation CONDITION=Condition PROTECTED=IsProtected LABELS=Labels CREATED=DateCreate",
    {
      POWER: (row) => (row["IsPowerOn"] === true ? "on" : "off"),
    },
  ),
  Action: columns("ID TYPE=Type STATE=State PROGRESS STEP STARTED=StartDate | ENDED=EndDate SERVER=ServerID ERROR", {
    PROGRESS: (row) => `${textOf(row["Progress"])}%`,
    STEP: (row) => {
      const steps = (row["Steps"] ?? []) as Row[];
      return steps.find(({ State }) => State === "InProgress" || State === "Failed")?.["Name"] ?? null;
    },
    ERROR: inside("Error", "detail"),
  }),
  Batch: columns("ID POLICY=Policy STATE=State SERVERS", { SERVERS: count("Servers") }),
  Image: columns(
    "ID NAME=Name FAMILY=Family TYPE=Type STATE=State HDD=Hdd MIN_RAM=MinRAM | PROGRESS=Progress LOCATION=DCLocation LABELS=Labels CREATED=DateCreate",
  ),
  Location: columns(
    "ID NAME=TechTitle TITLE=Title FREE_CPU FREE_RAM FREE_DISK | IPV6=IsEnableIpV6 FIREWALL=IsFirewallEnabled",
    {
      FREE_CPU: inside("Capacity", "FreeCPU"),
      FREE_RAM: inside("Capacity", "FreeRAM"),
      FREE_DISK: inside("Capacity", "FreeHDD"),
    },
  ),
  SshKey: columns("ID NAME=Title TYPE=Type FINGERPRINT=Fingerprint | COMMENT=Comment LABELS=Labels CREATED=DateCreate"),
  Domain: columns(
    "ID NAME=Name STATE=State RECORDS DELEGATION=Delegation SERIAL=Serial | LABELS=Labels CREATED=DateCreate",
    {
      RECORDS: count("LinkedRecords"),
    },
  ),
  Record: columns("ID NAME TYPE=TypeRecord TTL VALUE | STATE=State LABELS=Labels CREATED=DateCreate", {
    NAME: (row) => row["PunyName"],
    VALUE: recordValue,
  }),
  Version: columns("SERIAL=Serial DATE=Date CHANGES TOKEN=TokenID | REQUEST=RequestID", { CHANGES: count("Changes") }),
  Claim: columns("ID NAME=Name STATE=State RECORD=RecordName TEXT=RecordText | DETAIL=Detail EXPIRES=DateExpire"),
  WithdrawnDomain: columns("ID NAME=Name DATE=Date RECORDS=Records REASON=Reason"),
  Reservation: columns("ID NAME=Name PROJECT=ProjectID CREATED=DateCreate"),
  PublicNetwork: columns(
    "ID=Id NAME=Name STATE=State CIDR GATEWAY=Gateway ADDRESS=EdgeExternalIp SERVERS FIREWALL TUNNELS | CIDR6 BANDWIDTH=Bandwidth LOCATION=DCLocation LABELS=Labels CREATED=DateCreate",
    {
      SERVERS: count("LinkedServers"),
      FIREWALL: (row) => {
        const { Enabled, Rules } = row["Firewall"] as { Enabled?: boolean; Rules?: unknown[] };
        return Enabled === true ? `${Rules?.length ?? 0} rule${Rules?.length === 1 ? "" : "s"}` : "off";
      },
      TUNNELS: (row) => ((row["Vpn"] as { Tunnels?: unknown[] }).Tunnels ?? []).length,
    },
  ),
  Network: columns(
    "ID NAME=Name STATE=State CIDR GATEWAY=Gateway SERVERS | DHCP=IsDHCP LOCATION=DCLocation LABELS=Labels CREATED=DateCreate",
    {
      SERVERS: count("LinkedServers"),
    },
  ),
  TunnelStatus: columns(
    "TUNNEL=TunnelId STATE=State PEER=PeerAddress IN=BytesIn OUT=BytesOut SINCE=EstablishedAt ERROR | SEEN=LastSeen PROPOSAL=Proposal",
    {
      ERROR: inside("Error", "detail"),
    },
  ),
  FirewallVerdict: columns("VERDICT=Verdict RULE=Rule REASON=Reason"),
  ProjectSummary: columns("ID NAME=Name BLOCKED=IsBlocked"),
  Project: columns("ID NAME=Name BLOCKED=IsBlocked CREATED=DateCreate | LABELS=Labels"),
  Token: columns(
    "ID NAME=Name SCOPES=Scopes PROJECT=ProjectID EXPIRES=ExpiresAt USED=LastUsedAt | DOMAIN=DomainID PATTERN=RecordPattern FROM=AllowedFrom LABELS=Labels",
  ),
  Session: columns("ID NAME=Name TOKEN=TokenName ADDRESS=Address CREATED=DateCreate EXPIRES=ExpiresAt"),
  AuditEntry: columns(
    "ID DATE=Date TOKEN=TokenName ADDRESS=Address OPERATION=Operation OBJECT STATUS=Status | REQUEST=RequestID COUNT=Count",
    {
      OBJECT: (row) => (row["Resource"] === null ? null : `${textOf(row["Resource"])}:${textOf(row["ResourceID"])}`),
    },
  ),
  Event: columns("ID DATE=Date TYPE=Type OBJECT NAME | PROJECT=ProjectID TOKEN=TokenID REQUEST=RequestID", {
    OBJECT: (row) => `${textOf(row["Resource"])}:${textOf(row["ResourceID"])}`,
    NAME: (row) => {
      const data = row["Data"] as Row | null;
      return data?.["Name"] ?? data?.["Title"] ?? data?.["PunyName"] ?? data?.["Type"] ?? null;
    },
  }),
  Orphan: columns("ID KIND=Kind NUMBER=Number NAME=Name STATE=State BYTES=Bytes FOUND=DateFound"),
  Setting: columns(
    "NAME=Name VALUE UNIT=Unit SOURCE=Source | DEFAULT=Default PLACE=Place VARIABLE=Variable DESCRIPTION=Description",
    {
      VALUE: (row) => (row["IsHidden"] === true ? "(hidden)" : (row["Value"] ?? null)),
    },
  ),
  Webhook: columns("ID URL=Url TYPES=Types STATE=State | FAILING=FailingSince ERROR=Error LABELS=Labels"),
  Delivery: columns(
    "ID EVENT=EventID TYPE=Type STATE=State ATTEMPTS=Attempts STATUS=Status ERROR=Error | CREATED=DateCreate NEXT=NextDate ENDED=EndDate",
  ),
};

/** Returns the fields of an object that fit into a column. */
export const plainColumns = (row: Row): Column[] =>
  Object.keys(row)
    .filter((name) => typeof row[name] !== "object" || row[name] === null)
    .map((name) => ({ header: name.toUpperCase(), value: name }));
