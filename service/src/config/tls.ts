/** Settings of TLS for the API: own files, or a certificate of an ACME authority; and the plain HTTP server beside it. */
import { ConfigError, type Endpoint, parseEndpoint, parseList, type Settings } from "./value.ts";

/** Settings of TLS. */
export interface TlsConfig {
  /** Paths of PEM files; null: no own certificate. */
  readonly tls: { readonly certificate: string; readonly key: string } | null;
  /** The certificate to order; null: none. */
  readonly acme: {
    /** DNS names in lower case, also with `*.` in front. */
    readonly names: readonly string[];
    readonly contact: string | null;
    readonly directory: string;
  } | null;
  /** Address of the plain HTTP server that redirects to HTTPS; null: none. */
  readonly redirect: Endpoint | null;
}

const dnsName = /^(?=.{1,253}$)(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Throws if there is a redirect without TLS. Not for the control plane, which does not receive the paths of own files. */
export function checkRedirect({ tls, acme, redirect }: TlsConfig): void {
  if (redirect !== null && tls === null && acme === null)
    throw ConfigError.conflict(
      "BRUME_TLS_REDIRECT",
      "BRUME_TLS_REDIRECT needs TLS. Set BRUME_TLS_DOMAIN or BRUME_TLS_CERT, or remove it.",
    );
}

/** Returns the URL if it is one of HTTPS. */
function checkDirectory(value: string): string {
  const url = URL.parse(value);
  if (url?.protocol === "https:" && url.username === "") return value;
  throw new ConfigError("BRUME_ACME_DIRECTORY", "an https:// URL", value);
}

/** Reads the settings of TLS. Throws `ConfigError` for the first invalid one. */
export function readTlsSettings({ read }: Settings): TlsConfig {
  const certificate = read("BRUME_TLS_CERT");
  const key = read("BRUME_TLS_KEY");
  const domain = read("BRUME_TLS_DOMAIN");
  const contact = read("BRUME_TLS_CONTACT") ?? null;
  const redirect = read("BRUME_TLS_REDIRECT");
  const directory = checkDirectory(read("BRUME_ACME_DIRECTORY"));
  if ((certificate === undefined) !== (key === undefined))
    throw ConfigError.conflict(
      certificate === undefined ? "BRUME_TLS_KEY" : "BRUME_TLS_CERT",
      "BRUME_TLS_CERT and BRUME_TLS_KEY belong together. Set both or neither.",
    );
  const tls = certificate !== undefined && key !== undefined ? { certificate, key } : null;
  if (tls !== null && domain !== undefined)
    throw ConfigError.conflict("BRUME_TLS_DOMAIN", "Set BRUME_TLS_DOMAIN or BRUME_TLS_CERT, not both.");
  const names = parseList(domain ?? "").map((name) => name.toLowerCase().replace(/\.$/, ""));
  if (domain !== undefined && (names.length === 0 || names.length > 100 || !names.every((name) => dnsName.test(name))))
    throw new ConfigError("BRUME_TLS_DOMAIN", "one to 100 domain names such as cloud.example.com, with commas", domain);
  if (contact !== null && !/^[^\s@<>,?]+@[^\s@<>,?]+$/.test(contact))
    throw new ConfigError("BRUME_TLS_CONTACT", "a mail address such as admin@example.com", contact);
  return {
    tls,
    acme: names.length === 0 ? null : { names, contact, directory },
    redirect: redirect === undefined ? null : parseEndpoint("BRUME_TLS_REDIRECT", redirect),
  };
}
