/** Checks of `brume doctor` that concern an installation on this host: address of the name server, upgrade, and what happens at the logout. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Finding, judgeLinger, judgePort, judgeUpgrade } from "../model/doctor.ts";
import type { Session } from "../session.ts";

/** Returns when the newest file of the code was changed, in ms since 1970. */
function changeOf(installation: string): number | null {
  const folders = ["api/src", "service/src"].map((one) => join(installation, one)).filter((one) => existsSync(one));
  const times = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => statSync(join(folder, name)).ctimeMs),
  );
  return times.length === 0 ? null : Math.max(...times);
}

/** Checks the address of the name server. */
export async function checkPort(session: Session): Promise<Finding[]> {
  const client = await session.client();
  const { Checks } = await client.readReadiness({}, { signal: session.host.signal });
  const address = Checks.find(({ Name }) => Name === "nameserver")?.Detail ?? "";
  if (!/:\d+$/.test(address)) return [];
  const isHere = (await session.target()).name === "local";
  const sockets = isHere ? await session.host.capture("ss", ["-Hlnup"]).catch(() => "") : "";
  return [judgePort(address, sockets)];
}

/** Checks whether the code of the running service is the installed one. */
export async function checkUpgrade(session: Session): Promise<Finding[]> {
  const { host } = session;
  const client = await session.client();
  const { signal } = host;
  const { info } = (await client.readOpenapi({}, { signal })) as { info: { version: string } };
  const isHere = (await session.target()).name === "local" && host.installation !== null;
  // Without the scope for metrics only the versions are compared.
  const metrics = isHere ? await client.readMetrics({}, { signal }).catch(() => "") : "";
  const seconds = /^process_start_time_seconds (\S+)$/m.exec(metrics)?.[1];
  const started = seconds === undefined ? null : Number(seconds) * 1000;
  return [judgeUpgrade(info.version, host.version, started, isHere ? changeOf(host.installation ?? "") : null)];
}

/** Checks what happens to processes of this user at the logout. Processes of root continue. */
export async function checkLinger(session: Session): Promise<Finding[]> {
  const isHere = (await session.target()).name === "local";
  if (!isHere || process.getuid?.() === 0 || !existsSync("/run/systemd/system")) return [];
  const user = String(process.getuid?.());
  return [
    judgeLinger(await session.host.capture("loginctl", ["show-user", user, "--property=Linger"]).catch(() => "no")),
  ];
}
