/** The text that a start prints for people: addresses, the token, and example commands to paste. */
import { join } from "node:path";
import { quoteShell } from "./base/quote.ts";
import type { KeptSecret } from "./base/secretfile.ts";

/** How to get token 1. */
export interface TokenHint {
  /** For people. */
  readonly line: string;
  /** Shell text for use inside double quotes. */
  readonly shell: string;
}

/** Shows the token itself only once, when it is created, and only on a terminal: others can read a journal or a file. */
export function hintOfToken(dataFolder: string, kept: KeptSecret | null): TokenHint {
  if (kept === null) return { line: "the value of BRUME_TOKEN", shell: "$BRUME_TOKEN" };
  const path = join(dataFolder, "token");
  const shell = `$(cat ${quoteShell(path)})`;
  if (!kept.isNew) return { line: `in ${path}`, shell };
  if (!process.stdout.isTTY) return { line: `created now, in ${path}`, shell };
  return { line: `${kept.value}\n         (shown only once; it is in ${path})`, shell };
}

/** Returns the text that the start prints: addresses, token, and example commands to paste. `domain`: one that is served already. */
export function startText(url: string, token: TokenHint, dns: string, domain: string | null): string {
  const colon = dns.lastIndexOf(":");
  const server = `@${dns.slice(0, colon).replace(/[[\]]/g, "")} -p ${dns.slice(colon + 1)}`;
  const curl = `curl -sS -w '\\n' -H "Authorization: Bearer ${token.shell}" ${url}`;
  const lines =
    domain === null
      ? [
          "Create a domain with an address and query it:",
          "",
          `  ${curl}/dns -d '{"Name":"example.com","Ip":"192.0.2.10"}'`,
          `  dig +short ${server} example.com`,
        ]
      : [
          "List the domains and query the first one:",
          "",
          `  ${curl}/dns`,
          `  dig +noall +answer ${server} ${domain} SOA`,
        ];
  return [
    "",
    "Brume is ready.",
    "",
    `  Web    ${url}/console/`,
    `  API    ${url}        (reference: ${url}/docs)`,
    `  Token  ${token.line}`,
    `  DNS    ${dns}, UDP and TCP`,
    "  CLI    npx brume        (as root also brume, from any folder)",
    "",
    ...lines,
    "",
    "Create a server and wait until SSH works (the response contains the password):",
    "",
    `  ${curl}/server -H 'Prefer: wait=60' -d '{"Name":"web-1","RAM":256,"HDD":1,"WaitFor":"Ssh"}'`,
    "",
    "Ctrl-C stops the service. Servers and networks continue, and all confirmed changes are stored. To remove them from this host: npm run down",
    "",
    "",
  ].join("\n");
}
