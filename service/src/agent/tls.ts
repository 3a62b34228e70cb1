/**
 * TLS between the control plane and agents on other hosts: TLS 1.3, certificates of both sides from the installation's own authority, and
 * its list of revoked certificates. The extended key usage keeps the roles apart: an agent has `serverAuth`, a control plane `clientAuth`,
 * so the certificate of one agent never opens another agent.
 */
import { checkServerIdentity, createSecureContext, type PeerCertificate } from "node:tls";

/** Certificates of one side, as PEM texts. */
export interface Identity {
  /** Certificate of the authority. No other authority is trusted. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  /** Revoked certificates. The authority signs a new list before the previous one expires; an expired list refuses everything. */
  readonly revoked: string;
}

const common = ({ ca, certificate, key, revoked }: Identity) =>
  ({ ca, cert: certificate, key, crl: revoked, minVersion: "TLSv1.3", rejectUnauthorized: true }) as const;

/** Returns the options of the agent's server. */
export const serverOptions = (identity: Identity) => ({ ...common(identity), requestCert: true }) as const;

/** Returns the options of connections to the agent of this name, which its certificate must contain (`subjectAltName`). */
export const clientOptions = (identity: Identity, name: string) =>
  ({
    // Parsed once, not for each connection.
    secureContext: createSecureContext(common(identity)),
    rejectUnauthorized: true,
    servername: name,
    checkServerIdentity: (_host: string, certificate: PeerCertificate) => checkServerIdentity(name, certificate),
  }) as const;
