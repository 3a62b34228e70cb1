/** A certificate authority for tests, made with openssl once per process: an agent, a control plane, a revoked one and strangers. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Identity } from "../../service/src/agent/tls.ts";

export interface Identities {
  readonly agent: Identity;
  /** The agent with a list that revokes `lost`. */
  readonly agentAfterLoss: Identity;
  readonly control: Identity;
  /** A control plane whose certificate is revoked in `agentAfterLoss`. */
  readonly lost: Identity;
  /** A control plane of another authority. */
  readonly stranger: Identity;
  /** An agent of another host. Its certificate may not be used by a control plane. */
  readonly otherAgent: Identity;
}

function createAuthority(folder: string) {
  const openssl = (...args: string[]): void => {
    execFileSync("openssl", args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  };
  const read = (name: string): string => readFileSync(join(folder, name), "utf8");
  writeFileSync(join(folder, "index"), "");
  writeFileSync(join(folder, "crlnumber"), "01\n");
  writeFileSync(
    join(folder, "ca.cnf"),
    `[ca]
default_ca = own
[own]
database = index
crlnumber = crlnumber
serial = serial
new_certs_dir = .
certificate = ca.pem
private_key = ca.key
default_md = sha256
default_crl_days = 30
default_days = 30
policy = any
unique_subject = no
[any]
commonName = supplied
[agent]
extendedKeyUsage = serverAuth
subjectAltName = \${ENV::NAME}
[control]
extendedKeyUsage = clientAuth
`,
  );
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const usage = "keyUsage=critical,keyCertSign,cRLSign";
  openssl(
    "req",
    "-x509",
    ...key,
    "-keyout",
    "ca.key",
    "-out",
    "ca.pem",
    "-subj",
    "/CN=Brume test",
    "-addext",
    usage,
    "-days",
    "30",
  );

  function issue(name: string, role: "agent" | "control"): { readonly certificate: string; readonly key: string } {
    openssl("req", "-new", ...key, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`);
    const { NAME } = process.env;
    process.env.NAME = `DNS:${name}.brume`;
    openssl(
      "ca",
      "-batch",
      "-config",
      "ca.cnf",
      "-rand_serial",
      "-extensions",
      role,
      "-in",
      `${name}.csr`,
      "-out",
      `${name}.pem`,
      "-notext",
    );
    if (NAME === undefined) delete process.env.NAME;
    else process.env.NAME = NAME;
    return { certificate: read(`${name}.pem`), key: read(`${name}.key`) };
  }
  function revocations(): string {
    process.env.NAME = "DNS:none";
    openssl("ca", "-config", "ca.cnf", "-gencrl", "-out", "revoked.pem");
    return read("revoked.pem");
  }
  return {
    ca: read("ca.pem"),
    issue,
    revocations,
    revoke: (name: string) => openssl("ca", "-config", "ca.cnf", "-revoke", `${name}.pem`),
  };
}

let made: Identities | undefined;

/** Returns the identities of this process. */
export function identities(): Identities {
  if (made !== undefined) return made;
  const folder = mkdtempSync(join(tmpdir(), "brume-ca-"));
  const foreignFolder = mkdtempSync(join(tmpdir(), "brume-ca-"));
  try {
    const otherAuthority = createAuthority(folder);
    const foreign = createAuthority(foreignFolder);
    const [agent, otherAgent] = [otherAuthority.issue("host-1", "agent"), otherAuthority.issue("host-2", "agent")];
    const [control, lost] = [otherAuthority.issue("control", "control"), otherAuthority.issue("lost", "control")];
    const none = { ca: otherAuthority.ca, revoked: otherAuthority.revocations() };
    otherAuthority.revoke("lost");
    const some = { ca: otherAuthority.ca, revoked: otherAuthority.revocations() };
    const otherControl = { ...foreign.issue("control", "control"), ca: otherAuthority.ca, revoked: none.revoked };
    made = {
      agent: { ...agent, ...none },
      agentAfterLoss: { ...agent, ...some },
      control: { ...control, ...none },
      lost: { ...lost, ...none },
      stranger: otherControl,
      otherAgent: { ...otherAgent, ...none },
    };
    return made;
  } finally {
    for (const path of [folder, foreignFolder]) rmSync(path, { recursive: true, force: true });
  }
}
