/**
 * Translates `#cloud-config` for guests without cloud-init: users, keys, files, commands and the host name become a shell script, which the
 * guest runs at its first boot like any user script. Unsupported keys are refused by name, so that no part is ignored silently. Values are
 * quoted or in base64, so they are data of the script and never code.
 */
import { parseDocument, visit } from "yaml";
import { quoteShell } from "../../../base/quote.ts";

/** Maximum bytes of the YAML text and of the script. */
const [maxText, maxScript] = [128 * 1024, 600_000];
const maxAliases = 100;
/** Maximum characters of a reason. */
const maxReason = 500;

/** Result of a translation. */
export interface CloudConfig {
  /** Null if any part is refused. */
  readonly script: string | null;
  /** The unsupported keys, as `users[0].sudo, packages`, or the error in the text; "" if there are none. */
  readonly refused: string;
}

class UnsupportedError extends Error {}

/** Validates one value. Throws an `UnsupportedError` with its path. */
type Read<Value> = (value: unknown, place: string) => Value;

const refuse = (place: string, why: string): never => {
  throw new UnsupportedError(`${place} (${why})`);
};

const text =
  (pattern: RegExp, what: string): Read<string> =>
  (value, place) =>
    typeof value === "string" && pattern.test(value) ? value : refuse(place, `must be ${what}`);

/** Runs all parts, then throws one error with all refused ones. */
function runAll<Value>(parts: readonly (() => Value)[]): Value[] {
  const refused: string[] = [];
  const values = parts.flatMap((part) => {
    try {
      return [part()];
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      refused.push(error.message);
      return [];
    }
  });
  if (refused.length > 0) throw new UnsupportedError(refused.join(", "));
  return values;
}

const list =
  <Value>(read: Read<Value>): Read<Value[]> =>
  (value, place) =>
    Array.isArray(value)
      ? runAll(value.map((each: unknown, index) => () => read(each, `${place}[${index}]`)))
      : refuse(place, "must be a list");

const only =
  <const Allowed extends string | boolean>(...allowed: readonly Allowed[]): Read<Allowed> =>
  (value, place) =>
    allowed.find((one) => one === value) ?? refuse(place, `must be ${allowed.join(" or ")}`);

const flag = only(true, false);

/** Reads an object with optional fields. Null means absent; an unknown key is refused. */
const object =
  <Fields extends Record<string, unknown>>(fields: { readonly [Name in keyof Fields]: Read<Fields[Name]> }) =>
  (value: unknown, place: string): Partial<Fields> => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse(place, "must be a mapping");
    const readField = (key: string, given: unknown): [string, unknown] => {
      const at = place === "" ? key : `${place}.${key}`;
      if (!Object.hasOwn(fields, key)) throw new UnsupportedError(at);
      return [key, given === null ? undefined : fields[key]?.(given, at)];
    };
    const read = runAll(
      Object.entries(value).map(
        ([key, given]) =>
          () =>
            readField(key, given),
      ),
    );
    return Object.fromEntries(read.filter(([, one]) => one !== undefined)) as Partial<Fields>;
  };

const name = text(/^[a-z_][a-z0-9_-]{0,31}$/, "a name of at most 32 lower-case letters, digits, _ and -");
const line = text(/^[^\p{Cc}]{1,8192}$/u, "one line of text");
const path = text(/^\/[^\p{Cc}]{1,1023}$/u, "a path that begins with /");
const hostName = text(/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/, "a host name");
const anyText: Read<string> = (value, place) =>
  typeof value === "string" && !value.includes("\0") ? value : refuse(place, "must be text");
/** Like cloud-init, accepts an integer as text. */
const word: Read<string> = (value, place) => (Number.isInteger(value) ? String(value) : anyText(value, place));

const groups: Read<string[]> = (value, place) =>
  list(name)(typeof value === "string" ? value.split(",").map((one) => one.trim()) : value, place);

/** Octal text, or the number that YAML parses from 0644. */
const mode: Read<string> = (value, place) =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0o7777
    ? value.toString(8)
    : text(/^(0o?)?[0-7]{3,4}$/, "octal, as '0644'")(value, place).replace("0o", "");

const account = object({
  name,
  gecos: text(/^[^\p{Cc}:]{0,200}$/u, "text without colon"),
  homedir: text(/^\/[^\p{Cc}:]{1,200}$/u, "a path that begins with /"),
  shell: only("/bin/sh", "/bin/ash", "/bin/false"),
  uid: ((value, place) =>
    Number.isInteger(value) && (value as number) > 0 && (value as number) < 65_534
      ? String(value)
      : refuse(place, "must be a number from 1 to 65533")) satisfies Read<string>,
  groups,
  lock_passwd: flag,
  passwd: text(/^\$[0-9a-z]+\$[./0-9A-Za-z$=,]+$/, "a hash as in /etc/shadow"),
  hashed_passwd: text(/^\$[0-9a-z]+\$[./0-9A-Za-z$=,]+$/, "a hash as in /etc/shadow"),
  ssh_authorized_keys: list(line),
  sudo: only(false),
});

const user: Read<ReturnType<typeof account> | null> = (value, place) => {
  // The default user of the image is root, which exists.
  if (value === "default") return null;
  if (typeof value === "string") return account({ name: value }, place);
  const found = account(value, place);
  return found.name === undefined ? refuse(place, "must have a name") : found;
};

const file = object({
  path,
  content: anyText,
  encoding: only("text/plain", "base64", "b64"),
  permissions: mode,
  owner: text(/^[A-Za-z0-9_][A-Za-z0-9_-]*([:.][A-Za-z0-9_][A-Za-z0-9_-]*)?$/, "user or user:group"),
  append: flag,
  // No effect: users are always created before files are written.
  defer: flag,
});

const command: Read<string | string[]> = (value, place) =>
  Array.isArray(value) ? list(word)(value, place) : anyText(value, place);

const config = object({
  hostname: hostName,
  fqdn: hostName,
  preserve_hostname: only(false),
  users: list(user),
  ssh_authorized_keys: list(line),
  write_files: list(file),
  runcmd: list(command),
});

/** Parses YAML 1.1 like cloud-init: 0644 is octal and `yes` is true. */
function readYaml(source: string): unknown {
  try {
    // With duplicate keys, the last one counts, as in cloud-init. The check for duplicates would take quadratic time.
    const document = parseDocument(source, {
      version: "1.1",
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: "error",
    });
    const problem = document.errors[0] ?? document.warnings[0];
    if (problem !== undefined) throw problem;
    visit(document, {
      Node(_, node) {
        if ("tag" in node && node.tag !== undefined) throw new Error(`the tag ${node.tag} is not supported`);
      },
    });
    return document.toJS({ maxAliasCount: maxAliases });
  } catch (error) {
    // Also a stack overflow by deeply nested lists.
    throw new UnsupportedError(`invalid YAML: ${(error as Error).message}`);
  }
}

const encode = (content: Buffer): string => content.toString("base64").replaceAll(/.{76}(?=.)/g, "$&\n");
const lines = (values: readonly string[]): Buffer => Buffer.from(values.map((one) => `${one}\n`).join(""));
const call = (words: readonly string[], input: Buffer): string =>
  `${words.map((one, index) => (index === 0 ? one : quoteShell(one))).join(" ")} <<'END'\n${encode(input)}\nEND\n`;

/** Decodes base64; unlike cloud-init it refuses invalid characters. */
function decode(content: string, place: string): Buffer {
  const packed = content.replaceAll(/\s/g, "");
  return /^[A-Za-z0-9+/]*={0,2}$/.test(packed) ? Buffer.from(packed, "base64") : refuse(place, "must be base64");
}

/** The beginning of every script. Its output goes to the user data log, and from there to the serial console. */
const prologue = `#!/bin/sh
umask 022
until pidof getty >/dev/null; do sleep 1; done
sleep 1
echo >/dev/ttyS0
tail -n +1 -f /var/log/user-data.log >/dev/ttyS0 2>/dev/null &
follower=$!
echo "cloud-config: begins"
set_host_name() {
  hostname "$1" && echo "$1" >/etc/hostname
  printf '127.0.0.1\\tlocalhost\\n127.0.1.1\\t%s\\n::1\\tlocalhost\\n' "$2" >/etc/hosts
}
field() { awk -F: -v name="$1" -v place="$2" '$1 == name { print $place; exit }' /etc/passwd; }
free_number() { awk -F: '$3 >= 1000 && $3 < 60000 { used[$3] = 1 } END { n = 1000; while (n in used) n++; print n }' /etc/passwd /etc/group; }
add_group() {
  grep -q "^$1:" /etc/group || echo "$1:x:\${2:-$(free_number)}:" >>/etc/group
}
join_group() {
  add_group "$2"
  awk -F: -v OFS=: -v group="$2" -v user="$1" '$1 == group && ("," $4 ",") !~ ("," user ",") { $4 = $4 ($4 == "" ? "" : ",") user } { print }' /etc/group >/etc/group.new
  mv /etc/group.new /etc/group
}
# name, number, comment, home, shell
add_user() {
  if [ -n "$(field "$1" 1)" ]; then echo "user $1 is there"; return; fi
  number=\${2:-$(free_number)}
  home=\${4:-/home/$1}
  add_group "$1" "$number"
  echo "$1:x:$number:$(awk -F: -v name="$1" '$1 == name { print $3 }' /etc/group):$3:$home:\${5:-/bin/sh}" >>/etc/passwd
  echo "$1:*:19000:0:99999:7:::" >>/etc/shadow
  grep -qxF "\${5:-/bin/sh}" /etc/shells || [ "$5" = /bin/false ] || echo "$5" >>/etc/shells
  [ -d "$home" ] || { mkdir -p "$home" && chmod 755 "$home" && chown "$1:$1" "$home"; }
  echo "user $1 is made"
}
set_hash() {
  awk -F: -v OFS=: -v name="$1" -v hash="$2" '$1 == name { $2 = hash } { print }' /etc/shadow >/etc/shadow.new
  chmod 600 /etc/shadow.new && mv /etc/shadow.new /etc/shadow
}
add_keys() {
  home=$(field "$1" 6)
  mkdir -p "$home/.ssh"
  base64 -d >>"$home/.ssh/authorized_keys"
  chmod 700 "$home/.ssh"
  chmod 600 "$home/.ssh/authorized_keys"
  chown -R "$(field "$1" 3):$(field "$1" 4)" "$home/.ssh"
}
# path, mode, owner, append
write_file() {
  mkdir -p "$(dirname "$1")"
  if [ -n "$4" ]; then base64 -d >>"$1"; else base64 -d >"$1"; fi
  chown "$3" "$1"
  chmod "$2" "$1" && echo "file $1 is written"
}
`;

const epilogue = `echo "cloud-config: ended"
sync
sleep 2
kill $follower
`;

function renderUser(given: NonNullable<ReturnType<typeof user>>): string {
  const { name: login = "", uid = "", gecos = "", homedir = "", shell = "", lock_passwd: isLocked = true } = given;
  const hash = given.hashed_passwd ?? given.passwd;
  const keys = given.ssh_authorized_keys ?? [];
  return [
    `add_user ${[login, uid, gecos, homedir, shell].map(quoteShell).join(" ")}\n`,
    ...(given.groups ?? []).map((group) => `join_group ${quoteShell(login)} ${quoteShell(group)}\n`),
    hash === undefined ? "" : `set_hash ${quoteShell(login)} ${quoteShell(isLocked ? "*" : hash)}\n`,
    keys.length === 0 ? "" : call(["add_keys", login], lines(keys)),
  ].join("");
}

function renderFile(given: ReturnType<typeof file>, place: string): string {
  const { path: target, content = "", encoding = "text/plain", permissions = "644", owner = "root:root" } = given;
  if (target === undefined) return refuse(place, "must have a path");
  const bytes = encoding === "text/plain" ? Buffer.from(content) : decode(content, `${place}.content`);
  return call(["write_file", target, permissions, owner.replace(".", ":"), given.append === true ? "1" : ""], bytes);
}

function render(given: ReturnType<typeof config>): string {
  const host = given.hostname ?? given.fqdn?.split(".")[0];
  const names = given.fqdn === undefined ? host : `${given.fqdn} ${host}`;
  // All commands run in one shell, so that folder and variables carry over; a list is one command.
  const commands = (given.runcmd ?? []).map((one) => (typeof one === "string" ? one : one.map(quoteShell).join(" ")));
  return [
    prologue,
    host === undefined ? "" : `set_host_name ${quoteShell(host)} ${quoteShell(names ?? host)}\n`,
    ...(given.users ?? []).map((one) => (one === null ? "" : renderUser(one))),
    given.ssh_authorized_keys === undefined ? "" : call(["add_keys", "root"], lines(given.ssh_authorized_keys)),
    ...(given.write_files ?? []).map((one, index) => renderFile(one, `write_files[${index}]`)),
    commands.length === 0
      ? ""
      : `${call(["base64 -d >/run/seed/commands"], lines(commands))}sh /run/seed/commands </dev/null\necho "runcmd ended with $?"\n`,
    epilogue,
  ].join("");
}

/** Translates a text that begins with `#cloud-config`. Never throws. */
export function readCloudConfig(content: Buffer): CloudConfig {
  const refused = (reason: string): CloudConfig => ({ script: null, refused: reason });
  if (content.length > maxText) return refused(`more than ${maxText} bytes`);
  try {
    const script = render(config(readYaml(content.toString()) ?? {}, ""));
    return script.length > maxScript ? refused(`more than ${maxScript} bytes to write`) : { script, refused: "" };
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    return refused(error.message.length > maxReason ? `${error.message.slice(0, maxReason)} …` : error.message);
  }
}
