/** `brume acme`: TXT records of the DNS-01 challenge (RFC 8555, section 8.4). */
import type { Client } from "@brume/api/client.ts";
import { findDomain, nameOf } from "../dnsname.ts";
import { asciiName } from "../idna.ts";
import { UsageError } from "../model/values.ts";
import type { Run, Session } from "../session.ts";

/** Seconds. A verifier must not see an older record of the name for long. */
const ttl = 60;

/** Creates the TXT record, unless it exists. Other texts of the name stay: one name can have several challenges. */
export async function presentText(client: Client, name: string, value: string, signal: AbortSignal): Promise<void> {
  const { domain, owner } = await findDomain(client, name, signal);
  try {
    const body = { DomainId: domain.ID, Name: owner, Text: value, TTL: ttl };
    await client.createRecordTXT({ body }, { signal });
  } catch (error) {
    if ((error as { code?: unknown }).code !== "record_exists") throw error;
  }
}

/** Deletes the TXT record with this text. Nothing happens if it does not exist. */
export async function cleanUpText(client: Client, name: string, value: string, signal: AbortSignal): Promise<void> {
  const { domain } = await findDomain(client, name, signal);
  const { LinkedRecords } = await client.readDomain({ path: { id: domain.ID } }, { signal });
  const full = asciiName(name);
  for (const record of LinkedRecords)
    if (record.TypeRecord === "TXT" && nameOf(record, domain) === full && record.Text.trim() === `"${value}"`)
      await client.deleteRecord({ path: { domainid: domain.ID, recordId: record.ID } }, { signal });
}

/** Returns name and value from the arguments, otherwise from the variables that certbot sets for its hooks. */
function readChallenge({ line: { args }, host: { env } }: Session): readonly [string, string] {
  const domain = env["CERTBOT_DOMAIN"];
  const name = args[0] ?? (domain === undefined ? undefined : `_acme-challenge.${domain}`);
  const value = args[1] ?? (args[0] === undefined ? env["CERTBOT_VALIDATION"] : undefined);
  if (name === undefined || value === undefined)
    throw new UsageError("NAME and VALUE are missing.", "Give both, or call the command as a hook of certbot.");
  return [name, value];
}

/** `brume acme present`. */
export const present: Run = async (session) => {
  const challenge = readChallenge(session);
  await presentText(await session.client(), ...challenge, session.host.signal);
};

/** `brume acme cleanup`. */
export const cleanup: Run = async (session) => {
  const challenge = readChallenge(session);
  await cleanUpText(await session.client(), ...challenge, session.host.signal);
};
