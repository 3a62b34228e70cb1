/** Starts a Knot name server on a free port of loopback, to compare its responses with those of Brume. */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ZoneChange } from "../../service/src/drivers/nameserver/interface.ts";
import { openDnsClient, query } from "../support/dnsclient.ts";
import { zonefile } from "../support/zone.ts";

export interface Knot {
  readonly address: string;
  readonly pid: number;
  close(): Promise<void>;
}

/** Returns a port that is free for UDP and TCP and that the kernel does not assign automatically. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const udp = createSocket("udp4");
    const tcp = createServer();
    const bound = await Promise.all([
      new Promise<boolean>((resolve) => {
        udp.once("error", () => resolve(false)).bind(port, "127.0.0.1", () => resolve(true));
      }),
      new Promise<boolean>((resolve) => {
        tcp.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
      }),
    ]);
    udp.close();
    if (tcp.listening) await new Promise((resolve) => tcp.close(resolve));
    if (bound.every(Boolean)) return port;
  }
}

/** Starts knotd with these zones; `prefix` is a command to start it with (taskset), `more` a port, more configuration, and lines for each zone. */
export async function startKnot(
  zones: readonly ZoneChange[],
  prefix: readonly string[] = [],
  more: { host?: string; port?: number; config: string; zone?: string } = { config: "" },
): Promise<Knot> {
  const dir = await mkdtemp(join(tmpdir(), "brume-knot-"));
  const { host = "127.0.0.1", port = await freePort() } = more;
  await mkdir(join(dir, "db"));
  await Promise.all(zones.map((zone, i) => writeFile(join(dir, `${i}.zone`), zonefile(zone))));
  const listed = zones
    .map((zone, i) => `  - domain: ${zone.zone}.\n    file: ${join(dir, `${i}.zone`)}\n${more.zone ?? ""}`)
    .join("");
  const config = `server:
    listen: ${host}@${port}
    rundir: ${dir}
    udp-workers: 1
    tcp-workers: 1
database:
    storage: ${join(dir, "db")}
log:
  - target: stderr
    any: warning
${more.config}${listed === "" ? "" : `zone:\n${listed}`}`;
  await writeFile(join(dir, "knot.conf"), config);
  const [command, ...args] = [...prefix, "knotd", "-c", join(dir, "knot.conf")];
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (text) => {
    log += text;
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const failed = new Promise<never>((_, reject) => child.once("error", reject));
  failed.catch(() => {});
  const close = async (): Promise<void> => {
    child.kill();
    await ended;
    await rm(dir, { recursive: true, force: true });
  };
  const address = `${host}:${port}`;
  const dnsClient = await openDnsClient(address);
  try {
    const last = zones.at(-1)?.zone ?? "";
    for (;;) {
      const answer = await Promise.race([dnsClient.exchange(query(last, 6), 200), failed]);
      if (answer !== null && ((answer[3] as number) & 15) === (zones.length === 0 ? 5 : 0)) break;
      if (child.exitCode !== null) throw new Error(`knotd does not answer:\n${log}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } catch (error) {
    if (child.pid === undefined) await rm(dir, { recursive: true, force: true });
    else await close();
    throw error;
  } finally {
    dnsClient.close();
  }
  return { address, pid: child.pid ?? 0, close };
}
