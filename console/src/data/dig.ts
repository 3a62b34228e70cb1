/** The command by which a user queries the name server itself, before any parent zone leads to it. Pure. */
import type { Readiness } from "@brume/api/service.ts";

/** `isLocal`: it works only on the host. */
export interface Dig {
  readonly command: string;
  readonly isLocal: boolean;
}

/**
 * Returns the command for a domain. `host`: the name of the host in the address of the console, for a name server that listens on all
 * addresses. Null: the address is not known, for example while the name server fails.
 */
export function digOf(checks: Readiness["Checks"], domain: string, host: string): Dig | null {
  const check = checks.find(({ Name }) => Name === "nameserver");
  const [, address6, address4, port] = /^(?:\[([\da-f:.]+)\]|([\d.]+)):(\d+)$/i.exec(check?.Detail ?? "") ?? [];
  const bound = address6 ?? address4;
  if (bound === undefined || check?.Ok !== true) return null;
  const address = bound === "0.0.0.0" || bound === "::" ? host.replace(/^\[(.*)\]$/, "$1") : bound;
  return {
    command: `dig @${address}${port === "53" ? "" : ` -p ${port}`} ${domain} SOA`,
    isLocal: /^(127\.|::1$|localhost$)/.test(address),
  };
}
