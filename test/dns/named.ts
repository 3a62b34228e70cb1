/** Starts a BIND name server on loopback, for secondaries other than Knot. */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Named {
  readonly address: string;
  /** Returns its output so far. */
  log(): string;
  close(): Promise<void>;
}

/** Starts named on the port. `options` and `more` are configuration; its folder is the working directory. Resolves when it runs. */
export async function startNamed(port: number, options: string, more: string): Promise<Named> {
  const dir = await mkdtemp(join(tmpdir(), "brume-named-"));
  await writeFile(
    join(dir, "named.conf"),
    `options {
  directory "${dir}"; pid-file none; session-keyfile none; managed-keys-directory "${dir}";
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; dnssec-validation no; notify no;
${options}
};
controls { };
${more}
`,
  );
  const child = spawn("named", ["-g", "-n", "1", "-c", join(dir, "named.conf")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill();
      await ended;
    }
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", () => reject(new Error(`named does not run:\n${log}`)));
      child.stderr.on("data", (text) => {
        log += text;
        if (/^\S+ \S+ running$/m.test(log)) resolve();
      });
    });
  } catch (error) {
    await close();
    throw error;
  }
  return { address: `127.0.0.1:${port}`, log: () => log, close };
}
