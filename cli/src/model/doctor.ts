/** Judgements of `brume doctor` that need no input and output. */

/** Result of a check. */
export interface Finding {
  readonly Check: string;
  readonly State: "ok" | "warning" | "problem";
  readonly Detail: string;
  readonly Remedy: string;
}

/** Creates a finding without a problem. */
export const ok = (Check: string, Detail: string): Finding => ({ Check, State: "ok", Detail, Remedy: "" });
/** Creates a finding that does not stop the service. */
export const warning = (Check: string, Detail: string, Remedy: string): Finding => ({
  Check,
  State: "warning",
  Detail,
  Remedy,
});
/** Creates a finding that must be corrected. */
export const problem = (Check: string, Detail: string, Remedy: string): Finding => ({
  Check,
  State: "problem",
  Detail,
  Remedy,
});

/** Returns the first program of `ss -Hlnup` that uses the port at an address, or null. */
function holderOf(sockets: string, port: number): string | null {
  const line = sockets.split("\n").find((one) => new RegExp(`[:\\]]${port}\\s`).test(one));
  return line === undefined ? null : (/users:\(\("([^"]+)"/.exec(line)?.[1] ?? "another program");
}

/** Judges the address of the name server. `sockets`: output of `ss`, empty if it is unknown. */
export function judgePort(address: string, sockets: string): Finding {
  const port = Number(/:(\d+)$/.exec(address)?.[1]);
  const isLocal = /^(127\.|\[::1\])/.test(address);
  if (port === 53 && !isLocal) return ok("Port 53", `The name server listens on ${address}.`);
  const holder = holderOf(sockets, 53);
  const used = holder === null ? "" : ` Port 53 is used by ${holder} at some address of this host.`;
  return warning(
    "Port 53",
    `The name server listens on ${address}, so other hosts cannot query it at port 53.${used}`,
    "Set BRUME_DNS_LISTEN to one address of this host and port 53, or run brume init.",
  );
}

const day = 86_400_000;

/** Judges how long a certificate is still valid; times in ms since 1970. A short one is renewed when a third of its time is left. */
export function judgeCertificate(from: number, to: number, now: number): Finding {
  const detail =
    to <= now ? "The certificate has expired." : `The certificate expires in ${Math.floor((to - now) / day)} days.`;
  if (to - now >= Math.min(14 * day, (to - from) / 6)) return ok("Certificate", detail);
  return problem(
    "Certificate",
    detail,
    "Renew the files of BRUME_TLS_CERT; the service reads them again by itself. For a certificate of an authority see docs/certificates.md.",
  );
}

/** Judges whether the running service is that of the installed code. `started` and `changed` in ms since 1970; null: unknown. */
export function judgeUpgrade(
  running: string,
  installed: string,
  started: number | null,
  changed: number | null,
): Finding {
  const restart = "Restart the service. Servers, networks and tunnels continue.";
  if (running !== installed)
    return warning("Upgrade", `Version ${running} runs, and ${installed} is installed.`, restart);
  if (started !== null && changed !== null && changed > started)
    return warning("Upgrade", "The installed code is newer than the running service.", restart);
  return ok("Upgrade", `Version ${running} runs, as installed.`);
}

/** Judges whether processes of the user continue after a logout. `linger`: output of `loginctl`. */
export const judgeLinger = (linger: string): Finding =>
  /\byes\b/.test(linger)
    ? ok("Linger", "Processes of this user continue after the logout.")
    : warning(
        "Linger",
        "Processes of this user, such as the service, may end at the logout.",
        "loginctl enable-linger",
      );
