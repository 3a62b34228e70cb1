/**
 * The certificate of the API with two processes: only root may read its own files, and the supervisor sends them again when they change. The
 * control plane orders and renews one from an authority as a service in one process does.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { tagOf } from "../../service/src/drivers/router/model/name.ts";
import { whyNot } from "../support/hindrance.ts";
import { copyAccelerator } from "../support/machinelab.ts";
import { createProcess } from "../support/process.ts";
import { triesAll } from "../support/random.ts";
import { createPairs, writePair } from "../support/tlsfiles.ts";
import { until } from "../support/waituntil.ts";
import { hindrance as serverHindrance } from "./serverhost.ts";

const hindrance = serverHindrance ?? (whyNot("unshare", "nsenter", "openssl") || null);
if (hindrance !== null) console.log(`the certificate of two processes: not tried, ${hindrance}`);

/** Ends the daemons of networks that a stopped service has left running. */
function endDaemons(tag: string): void {
  for (const pid of readdirSync("/proc").map(Number).filter(Boolean))
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(`/run/brume-${tag}/`)) process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
}

test("the control plane uses changed files that it cannot read", { skip: hindrance ?? false }, async () => {
  const files = mkdtempSync(join(tmpdir(), "brt-"));
  const folder = mkdtempSync(join(tmpdir(), "brt-"));
  copyAccelerator(folder);
  const pairs = await createPairs("cloud.example.com", 2);
  const [first, second] = pairs as [(typeof pairs)[0], (typeof pairs)[0]];
  const inside = 'ip link set lo up; mount -t tmpfs run /run; exec "$@"';
  const brume = await createProcess("sqlite", {
    folder,
    stopped: true,
    // The harness appends `exec "$0" "$@"`.
    prefix: `set -- -mn --propagation private sh -c '${inside}' sh "$0" "$@"; exec unshare "$@";`,
    environment: {
      BRUME_SIMULATE: "0",
      BRUME_PROCESSES: "2",
      BRUME_LISTEN: "127.0.0.1:443",
      BRUME_TLS_REDIRECT: "127.0.0.1:80",
      ...writePair(files, first),
    },
  });
  const run = (...argv: string[]) => exec.run(["nsenter", "-t", String(brume.pid), "-n", ...argv]);
  const served = (): Promise<string> =>
    run("sh", "-c", "openssl s_client -connect 127.0.0.1:443 </dev/null 2>/dev/null | openssl x509");
  try {
    await assert.rejects(brume.start(), /fetch failed/);
    assert.equal((await served()).trim(), first.certificate.trim());
    assert.equal(readFileSync(join(folder, "control/url"), "utf8"), "https://127.0.0.1:443\n");
    assert.match(
      await run(
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{redirect_url}",
        "-H",
        "Host: cloud.example.com",
        "http://127.0.0.1/docs",
      ),
      /^https:\/\/cloud\.example\.com\/docs$/,
    );
    writePair(files, second);
    await until("the changed certificate is served", async () => (await served()).trim() === second.certificate.trim());
  } finally {
    await brume.end("SIGTERM");
    await brume.close();
    endDaemons(tagOf(folder));
    for (const each of [files, folder]) rmSync(each, { recursive: true, force: true });
  }
});

const noAuthority = hindrance ?? (whyNot("pebble") || null);
if (noAuthority !== null && hindrance === null)
  console.log(`an ordered certificate of two processes: not tried, ${noAuthority}`);

test("the control plane orders and renews a certificate", { skip: noAuthority ?? false }, async () => {
  // /etc is a copy, to which the test adds the root of its authority.
  const inside =
    'ip link set lo up; mount -t tmpfs run /run; cp -a /etc /run/etc; mount --bind /run/etc /etc; exec "$0" "$@"';
  const file = join(import.meta.dirname, "../e2e/tls-acme.test.ts");
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  // Its processes have a namespace of their own, and end with it: a service that stops leaves its networks running.
  const argv = [
    "-mnp",
    "--fork",
    "--kill-child",
    "--propagation",
    "private",
    "--mount-proc",
    "sh",
    "-c",
    inside,
    process.execPath,
    "--test",
    "--test-reporter=tap",
    // A kill during an order, and a change of names, only if all cases are tried.
    ...(triesAll ? [] : ["--test-name-pattern=it is temporary until"]),
    file,
  ];
  const child = spawn("unshare", argv, {
    env: { ...environment, ACME_PROCESSES: "2" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  assert.equal(code, 0, output);
  assert.match(output, triesAll ? /^# pass 3$/m : /^# pass 1$/m);
});
