/** `brume doctor`: checks the installation as far as the API reports it, and this computer. Every problem has a remedy. */
import { isIP } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { ApiError } from "@brume/api/client.ts";
import { grants } from "@brume/api/operation.ts";
import { showError } from "../errors.ts";
import { type Finding, judgeCertificate, ok, problem, warning } from "../model/doctor.ts";
import { align } from "../print/table.ts";
import type { Run, Session } from "../session.ts";
import { checkLinger, checkPort, checkUpgrade } from "./doctorlocal.ts";

const remedies: Readonly<Record<string, string>> = {
  database: "See the log of the service. A full disk and damaged files are the usual causes.",
  disk: "Delete images and backups, or move the data folder to a larger disk.",
  certificate:
    "docs/certificates.md describes how the name is proven. The log of the service has the reason of the authority.",
};

/** Returns from when until when the certificate of a server is valid, in ms since 1970. */
function readValidity(url: URL): Promise<{ readonly from: number; readonly to: number }> {
  // A URL has an IPv6 address in brackets.
  const host = url.hostname.replaceAll(/[[\]]/g, "");
  return new Promise((resolve, reject) => {
    const socket = connect(
      {
        host,
        port: Number(url.port || 443),
        ...(isIP(host) === 0 && { servername: host }),
        rejectUnauthorized: false,
        timeout: 5000,
      },
      () => {
        const { valid_from, valid_to } = socket.getPeerCertificate();
        resolve({ from: Date.parse(valid_from), to: Date.parse(valid_to) });
        socket.end();
      },
    );
    socket.once("error", reject);
    socket.once("timeout", () => socket.destroy(new Error("no response within 5 s")));
  });
}

async function checkCertificate(session: Session): Promise<Finding[]> {
  const { url } = await session.target();
  if (!url.startsWith("https:")) return [];
  const { from, to } = await readValidity(new URL(url));
  return [judgeCertificate(from, to, session.host.now())];
}

async function checkService(session: Session): Promise<Finding[]> {
  const { host } = session;
  const client = await session.client();
  const { url, name } = await session.target();
  const start = host.now();
  const { headers } = await client.raw.readHealth({}, { signal: host.signal });
  const end = host.now();
  const found = [ok("API", `${url} (${name}) responds in ${end - start} ms`)];
  const skew = Math.round((Date.parse(headers.get("date") ?? "") - (start + end) / 2) / 1000);
  if (Math.abs(skew) > 30)
    found.push(
      warning(
        "Clock",
        `The clocks of the service and of this computer differ by ${Math.abs(skew)} s.`,
        "Synchronise both with NTP.",
      ),
    );
  else found.push(ok("Clock", "The clocks of the service and of this computer agree."));
  found.push(...(await guard(session, "Certificate", checkCertificate)));
  const { Status, Checks } = await client.readReadiness({}, { signal: host.signal });
  found.push(
    Status === "ready" ? ok("Service", "ready") : problem("Service", Status, "The checks below show the cause."),
  );
  for (const { Name, Ok, Detail } of Checks)
    found.push(Ok ? ok(Name, Detail) : problem(Name, Detail, remedies[Name] ?? "See the log of the service."));
  return found;
}

async function checkToken(session: Session): Promise<Finding[]> {
  const client = await session.client();
  const { signal } = session.host;
  const { Token } = await client.readAccount({}, { signal });
  const found = [ok("Token", `${Token.Name}: ${Token.Scopes.join(", ")}`)];
  const isAdmin = grants(Token.Scopes, "account:admin");
  // Only an administrator may read the settings.
  const settings = isAdmin ? await client.listSettings({}, { signal }) : [];
  const simulationRemedy = settings.some(({ Name, Value }) => Name === "simulate" && Value === "1")
    ? "BRUME_SIMULATE is set. Start the service without it."
    : "Start the service as root. In a clone npm start installs the packages; with the Debian package: apt-get install $(sh /usr/lib/brume/scripts/setup missing)";
  for (const { TechTitle, Engines } of await client.listLocations({}, { signal }))
    for (const [part, engine] of Object.entries(Engines))
      found.push(
        engine === "sim"
          ? warning(
              `Engine ${part}`,
              `Simulated in location ${TechTitle}: nothing exists on the host.`,
              simulationRemedy,
            )
          : ok(`Engine ${part}`, `${engine} in location ${TechTitle}`),
      );
  if (!isAdmin) return found;
  const orphans = await client.listOrphans({}, { signal });
  found.push(
    orphans.length === 0
      ? ok("Orphans", "none")
      : warning(
          "Orphans",
          `${orphans.length} disks on the host belong to no object.`,
          "brume orphan list shows them; adopt or delete each.",
        ),
  );
  return found;
}

/** Packages of this host, if the service of this clone is the one that is used, or none was started yet. */
async function checkPackages(session: Session): Promise<Finding[]> {
  const { installation, capture } = session.host;
  const target = await session.target().catch(() => null);
  if (installation === null || (target !== null && target.name !== "local")) return [];
  const names = (await capture("sh", [join(installation, "scripts/setup"), "missing"])).trim();
  return [
    names === ""
      ? ok("Packages", "all Debian packages are installed")
      : warning("Packages", `Missing: ${names}.`, `As root: apt-get install ${names}`),
  ];
}

async function checkComputer({ host }: Session): Promise<Finding[]> {
  const check = async (program: string, args: readonly string[], use: string, debian: string) =>
    host.capture(program, args).then(
      () => ok(program, use),
      (error: unknown) =>
        (error as NodeJS.ErrnoException).code === "ENOENT"
          ? warning(program, `It is not installed: no ${use}.`, `On Debian: apt-get install ${debian}`)
          : ok(program, use),
    );
  return Promise.all([
    check("ssh", ["-V"], "brume ssh", "openssh-client"),
    check("dig", ["-v"], "queries to the name server", "bind9-dnsutils"),
  ]);
}

/** Converts an error of a check to a problem, so that the other checks still run. */
async function guard(
  session: Session,
  name: string,
  check: (session: Session) => Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await check(session);
  } catch (error) {
    if (error instanceof ApiError && error.code === "scope_missing") return [];
    const { message, remedy } = showError(error, null, "http://localhost/");
    return [problem(name, message, remedy)];
  }
}

export const run: Run = async (session) => {
  const { print, options } = session;
  const service = await guard(session, "API", checkService);
  const token = service[0]?.State === "ok" ? await guard(session, "Token", checkToken) : [];
  const packages = await guard(session, "Packages", checkPackages);
  const local: Finding[] = [];
  if (service[0]?.State === "ok")
    for (const check of [checkPort, checkUpgrade, checkLinger])
      local.push(...(await guard(session, "Installation", check)));
  const findings = [...service, ...token, ...local, ...packages, ...(await guard(session, "Computer", checkComputer))];
  const problems = findings.filter(({ State }) => State === "problem").length;
  if (options.output === "table" || options.output === "wide") {
    const { green, red, yellow } = print.style;
    const marks = { ok: green("✓"), warning: yellow("!"), problem: red("✗") };
    print.lines(
      align(
        findings.map(({ Check, State, Detail, Remedy }) => [
          marks[State],
          Check,
          Remedy === "" ? Detail : `${Detail} → ${Remedy}`,
        ]),
      ),
    );
    print.lines(["", problems === 0 ? "No problem found." : `${problems} problem${problems === 1 ? "" : "s"} found.`]);
  } else await print.result(findings, "", false);
  return problems > 0 ? 1 : 0;
};
