/** The text that a start prints for people: addresses, the token, and commands to try. */
import { join } from "node:path";
import { quoteShell } from "./base/quote.ts";
import type { KeptSecret } from "./base/secretfile.ts";

/** Shows the token itself only once, when it is created, and only on a terminal: others can read a journal or a file. */
export function hintOfToken(dataFolder: string, kept: KeptSecret | null): string {
  if (kept === null) return "the value of BRUME_TOKEN";
  const path = join(dataFolder, "token");
  if (!kept.isNew) return `in ${path}`;
  if (!process.stdout.isTTY) return `created now, in ${path}`;
  return `${kept.value}\n         (shown only once; it is in ${path})`;
}

/** What the text is about. */
export interface Started {
  readonly url: string;
  /** As `hintOfToken` returns it. */
  readonly token: string;
  /** Address and port of the name server. */
  readonly dns: string;
  /** A domain that is served already. */
  readonly domain: string | null;
  /** Folder of the data, if it is not the one that the command `brume` finds by itself. */
  readonly dataFolder: string | null;
  /** The token is a file in this folder; otherwise it is in the variable `BRUME_TOKEN`. */
  readonly hasTokenFile: boolean;
}

/** Returns the text that the start prints. */
export function startText({ url, token, dns, domain, dataFolder, hasTokenFile }: Started): string {
  const colon = dns.lastIndexOf(":");
  const server = `@${dns.slice(0, colon).replace(/[[\]]/g, "")} -p ${dns.slice(colon + 1)}`;
  return [
    "",
    "Brume is ready.",
    "",
    `  Web    ${url}/console/`,
    `  API    ${url}        (reference: ${url}/docs)`,
    `  Token  ${token}`,
    `  DNS    ${dns}, UDP and TCP`,
    "",
    "Try it in a second terminal. If the command brume is not found there, use npx brume in the folder of the clone.",
    "",
    ...(hasTokenFile ? [] : [`  export BRUME_URL=${quoteShell(url)} BRUME_TOKEN="$BRUME_TOKEN"`]),
    ...(hasTokenFile && dataFolder !== null ? [`  export BRUME_DATA=${quoteShell(dataFolder)}`] : []),
    "  brume server create web-1 --ram 256 --hdd 1 --wait-for guest",
    ...(domain === null
      ? ["  brume domain create example.com --ip 192.0.2.10", `  dig +short ${server} example.com`]
      : ["  brume domain list", `  dig +noall +answer ${server} ${domain} SOA`]),
    "  brume doctor",
    "",
    `First steps: ${url}/docs/start`,
    "Ctrl-C stops the service. Servers and networks continue, and all confirmed changes are stored.",
    "To remove them from this host: npm run down (of the Debian package: brume-admin down)",
    "",
    "",
  ].join("\n");
}
