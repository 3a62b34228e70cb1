/** `brume init`: the first set-up. Questions, or flags, become the settings file and the systemd unit. */
import { existsSync, type Stats } from "node:fs";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { networkInterfaces, tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { replaceFile } from "../context.ts";
import type { Host } from "../host.ts";
import { type SettingTexts, settingsFile, unitFile } from "../model/setup.ts";
import { UsageError } from "../model/values.ts";
import { confirm } from "../perform.ts";
import { isOn, type Run, type Session, textFlag } from "../session.ts";
import { readReport, serviceOf } from "./config.ts";

/** A question: the flag that answers it, the key of the setting, and the meaning in the file. */
interface Question {
  readonly flag: string;
  readonly key: string;
  readonly text: string;
  readonly meaning: string;
  readonly usual: (given: SettingTexts) => string;
}

/** Returns the first IPv4 address of an interface that is not the loopback. */
const ownAddress = (): string =>
  Object.values(networkInterfaces())
    .flat()
    .find((one) => one !== undefined && one.family === "IPv4" && !one.internal)?.address ?? "127.0.0.1";

const isLocal = (listen: string) => /^(127\.|localhost:|\[::1\]|\d+$)/.test(listen);
const none = () => "";

const questions = (isRoot: boolean, installation: string): readonly Question[] => [
  {
    flag: "data",
    key: "data",
    text: "Folder of the data",
    meaning: "database, keys, images",
    usual: () => (isRoot ? "/var/lib/brume" : join(installation, "data")),
  },
  {
    flag: "listen",
    key: "listen",
    text: "Address and port of the API",
    meaning: "address and port of the API",
    usual: () => "127.0.0.1:8080",
  },
  {
    flag: "tls-domain",
    key: "tls_domain",
    text: "TLS: name of the API, for a certificate of Let's Encrypt; empty: own files, or HTTP",
    meaning: "names of the API in its certificate",
    usual: none,
  },
  {
    flag: "tls-cert",
    key: "tls_cert",
    text: "TLS: file of the certificate in PEM; empty: HTTP",
    meaning: "certificate of the API",
    usual: none,
  },
  { flag: "tls-key", key: "tls_key", text: "TLS: file of its key", meaning: "key of the certificate", usual: none },
  {
    flag: "tls-redirect",
    key: "tls_redirect",
    text: "TLS: address and port that redirects from HTTP; empty: none",
    meaning: "plain HTTP server that redirects to HTTPS",
    usual: ({ listen = "" }) => (listen.endsWith(":443") ? listen.replace(/:443$/, ":80") : ""),
  },
  {
    flag: "dns-listen",
    key: "dns_listen",
    text: "Address and port of the name server",
    meaning: "address and port of the name server",
    usual: () => (isRoot ? `${ownAddress()}:53` : "127.0.0.1:5353"),
  },
  {
    flag: "dns-names",
    key: "dns_names",
    text: "Name of this name server, such as ns1.example.com",
    meaning: "names in the NS set of every domain",
    usual: none,
  },
  {
    flag: "public-address",
    key: "public_address",
    text: "Public IPv4 address, if a router translates it; empty: that of the host",
    meaning: "address in the configurations of VPN peers",
    usual: none,
  },
  {
    flag: "public-pool",
    key: "public_pool",
    text: "Address blocks of public networks",
    meaning: "blocks for public networks",
    usual: () => "10.64.0.0/16",
  },
  {
    flag: "public-pool6",
    key: "public_pool6",
    text: "IPv6 block of public networks; empty: no IPv6",
    meaning: "IPv6 block for networks",
    usual: none,
  },
  {
    flag: "token",
    key: "token",
    text: "First token, 64 hexadecimal digits; empty: created at the first start",
    meaning: "value of token 1",
    usual: none,
  },
];

/** Returns whether a question is left out because of an earlier answer. */
function isNeedless({ key }: Question, given: SettingTexts): boolean {
  const has = (name: string): boolean => (given[name] ?? "") !== "";
  if (key === "tls_domain") return isLocal(given["listen"] ?? "");
  if (key === "tls_cert") return isLocal(given["listen"] ?? "") || has("tls_domain");
  if (key === "tls_redirect") return !has("tls_domain") && !has("tls_cert");
  return key === "tls_key" && (given["tls_cert"] ?? "") === "";
}

const settingsText = (given: SettingTexts, all: readonly Question[]): string =>
  settingsFile(given, Object.fromEntries(all.map(({ key, meaning }) => [key, meaning])));

/** Returns why the service rejects the settings; null if it accepts them. */
async function rejection(host: Host, text: string): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), "brume-init-"));
  const draft = join(folder, "brume.toml");
  try {
    await writeFile(draft, text, { mode: 0o600 });
    await readReport(host, draft);
    return null;
  } catch (error) {
    if (error instanceof UsageError) return error.message.replaceAll(`${folder}/`, "");
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const missingFile = ({ key }: Question, value: string): string | null =>
  (key === "tls_cert" || key === "tls_key") && value !== "" && !existsSync(value) ? `${value} does not exist.` : null;

/** Returns why the last answer is wrong; null if it is not. Settings that depend on later answers are checked at the end. */
async function whyWrong(host: Host, question: Question, given: SettingTexts, all: readonly Question[]) {
  const { key } = question;
  const missing = missingFile(question, given[key] ?? "");
  if (missing !== null) return missing;
  const reason = /^\S+:\d+: (.*)$/s.exec((await rejection(host, settingsText(given, all))) ?? "")?.[1] ?? "";
  return reason.startsWith(`${key} must `) ? reason : null;
}

/** Prompts for one answer, and again while it is wrong. */
async function prompt(session: Session, question: Question, given: SettingTexts, all: readonly Question[]) {
  const usual = question.usual(given);
  for (;;) {
    const text = `${question.text}${usual === "" ? "" : ` [${usual}]`}: `;
    const answer = (await session.host.input.ask(text)).trim();
    if (answer === "") return usual;
    const reason = await whyWrong(session.host, question, { ...given, [question.key]: answer }, all);
    if (reason === null) return answer;
    session.print.note(reason);
  }
}

async function ask(session: Session, all: readonly Question[]): Promise<SettingTexts> {
  const given: Record<string, string> = {};
  for (const question of all) {
    const flag = textFlag(session, question.flag);
    if (flag !== undefined) given[question.key] = flag;
    else if (isNeedless(question, given)) continue;
    else if (session.options.yes) given[question.key] = question.usual(given);
    else given[question.key] = await prompt(session, question, given, all);
  }
  return given;
}

/** Returns the command line that starts the service with the new settings. `packaged`: name of the unit of the Debian package, or null. */
function startLine(unit: string | null, packaged: string | null): string {
  if (unit !== null) return `systemctl daemon-reload && systemctl enable --now ${basename(unit)}`;
  if (packaged === null) return "npm start";
  const other = packaged === "brume.service" ? "brume-dns.service" : "brume.service";
  return `systemctl disable --now ${other}; systemctl enable ${packaged} && systemctl restart ${packaged}`;
}

/** Returns what the operator does next. `start`: the command line that starts the service. */
function nextSteps(given: SettingTexts, start: string): string[] {
  const { dns_listen: dns = "", dns_names: names = "" } = given;
  const address = dns.replace(/:\d+$/, "");
  const glue = names.split(",")[0]?.trim() ?? "";
  return [
    "",
    "Next:",
    `  ${start}`,
    "  brume doctor",
    ...(glue === ""
      ? []
      : [
          `  At the registrar of your domain: name server ${glue}, glue record ${address}. Port 53 must be reachable with UDP and TCP.`,
        ]),
  ];
}

/** `brume init`. */
export const run: Run = async (session) => {
  const { host, print, options } = session;
  const { folder, node } = serviceOf(host);
  if (!options.yes && (!host.input.isTerminal || !host.err.isTerminal))
    throw new UsageError(
      "There is no terminal for the questions.",
      "Answer with flags, and add --yes: the other settings get their defaults.",
    );
  const isRoot = process.getuid?.() === 0;
  const all = questions(isRoot, folder);
  const given = await ask(session, all).catch((error: unknown) => {
    if (!(error instanceof Error) || error.name !== "AbortError") throw error;
    throw new DOMException("Stopped. Nothing was changed.", "AbortError");
  });
  const remedy = "Nothing was changed. Correct the answer.";
  for (const question of all) {
    const missing = missingFile(question, given[question.key] ?? "");
    if (missing !== null) throw new UsageError(`--${question.flag}: ${missing}`, remedy);
  }
  const path = textFlag(session, "file") ?? (isRoot ? "/etc/brume/brume.toml" : join(folder, "brume.toml"));
  const text = settingsText(given, all);
  const reason = await rejection(host, text);
  if (reason !== null) throw new UsageError(reason, remedy);
  const template = isOn(session, "dns-only") ? "brume-dns.service" : "brume.service";
  const isPackaged = isRoot && existsSync(join("/lib/systemd/system", template));
  const chosen = textFlag(session, "unit");
  if (chosen === undefined && isPackaged)
    print.note(`The unit ${template} of the Debian package stays; --unit FILE writes another one.`);
  const place = chosen ?? (isRoot && !isPackaged ? "/etc/systemd/system/brume.service" : "");
  const unit = place === "" || place === "none" ? null : place;
  // A unit of the package reads the file as its user, by the group of the file.
  const existing = await stat(path).catch(() => null);
  const files: [string, string, number, Stats | null][] = [
    [path, text, existing === null ? 0o600 : existing.mode & 0o770, existing],
  ];
  if (unit !== null) {
    const data = resolve(folder, given["data"] ?? "data");
    const paths = { installation: folder, node, settings: resolve(path), data };
    files.push([unit, unitFile(await readFile(join(folder, "packaging", template), "utf8"), paths), 0o644, null]);
  }
  for (const [name, content, mode, owner] of files) {
    const old = await readFile(name, "utf8").catch(() => null);
    if (old !== null && old !== content) await confirm(session, `Replace ${name}`);
    await replaceFile(name, content, mode, 0o755, owner);
    print.note(`${name} is written.`);
  }
  print.lines(nextSteps(given, startLine(unit, isPackaged ? template : null)));
};
