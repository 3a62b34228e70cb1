/** Pebble, a small ACME authority for tests, on free ports of 127.0.0.1. It queries one name server for all names. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./port.ts";
import { until } from "./waituntil.ts";

/** A running authority. */
export interface Pebble {
  /** URL of its directory. */
  readonly directory: string;
  /** File with the certificate of its API, which clients must trust. */
  readonly ca: string;
  /** Returns the certificate that its certificates lead to. */
  root(): Promise<string>;
  close(): Promise<void>;
}

/** Options of `startPebble`. */
export interface PebbleOptions {
  /** `host:port` of the name server. */
  readonly dns: string;
  /** Port of HTTP-01 challenges. Default 5002. */
  readonly httpPort?: number;
  /** Seconds that certificates are valid. Default: years. */
  readonly validity?: number;
}

/** Returns whether a port of 127.0.0.1 accepts a connection. */
const accepts = async (port: number): Promise<boolean> => {
  const socket = connect(port, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
};

/** Starts Pebble; resolves when it listens. */
export async function startPebble({ dns, httpPort = 5002, validity }: PebbleOptions): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), "brume-pebble-"));
  const [certificate, privateKey] = [join(folder, "ca.pem"), join(folder, "ca.key")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", privateKey];
  await promisify(execFile)("openssl", ["req", "-x509", ...key, "-out", certificate, "-days", "2", ...subject]);
  const [port, management] = [await freePort(), await freePort()];
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate,
    privateKey,
    httpPort,
    tlsPort: 5001,
    ...(validity !== undefined && { certificateValidityPeriod: validity }),
  };
  writeFileSync(join(folder, "pebble.json"), JSON.stringify({ pebble }));
  const args = ["-config", join(folder, "pebble.json"), "-dnsserver", dns];
  const env = { PATH: process.env["PATH"], PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "0" };
  const child: ChildProcess = spawn("pebble", args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const listening = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (part) => {
        text += String(part);
        if (/ACME directory/.test(text)) resolve();
      });
    child.once("exit", () => reject(new Error(`pebble ended: ${text}`)));
  });
  await listening;
  // It prints that before it listens.
  for (const each of [port, management]) await until("Pebble listens", () => accepts(each));
  const ca = certificate;
  return {
    directory: `https://localhost:${port}/dir`,
    ca,
    async root() {
      const sent = request(`https://localhost:${management}/roots/0`, { ca: readFileSync(ca) }).end();
      const [message] = (await once(sent, "response")) as [AsyncIterable<Buffer>];
      let pem = "";
      for await (const part of message) pem += String(part);
      return pem;
    },
    async close() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "close");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
