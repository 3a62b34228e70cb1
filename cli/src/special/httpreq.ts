/** `brume adapter httpreq`: the HTTP interface of lego's DNS provider `httpreq` (go-acme.github.io/lego/dns/httpreq). */
import { createHash } from "node:crypto";
import { BadRequest, serve } from "../adapter.ts";
import type { Run } from "../session.ts";
import { cleanUpText, presentText } from "./acme.ts";

/** Returns name and text of the record, from the default form (`fqdn`, `value`) or the form `RAW` (`domain`, `token`, `keyAuth`). */
function readChallenge(body: unknown): readonly [string, string] {
  const { fqdn, value, domain, keyAuth } = (typeof body === "object" && body !== null ? body : {}) as Record<
    string,
    unknown
  >;
  if (typeof fqdn === "string" && typeof value === "string") return [fqdn, value];
  if (typeof domain !== "string" || typeof keyAuth !== "string")
    throw new BadRequest("The body must have fqdn and value, or domain and keyAuth.");
  return [`_acme-challenge.${domain}`, createHash("sha256").update(keyAuth).digest("base64url")];
}

export const run: Run = (session) =>
  serve(session, "application/json", async ({ route, body, client }) => {
    if (route !== "POST /present" && route !== "POST /cleanup") return null;
    const change = route === "POST /present" ? presentText : cleanUpText;
    await change(client, ...readChallenge(body), session.host.signal);
    return { status: 200, body: {} };
  });
