/** The certificate of the API with two processes: only root may read its files, and the supervisor sends them again when they change. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { whyNot } from "../support/hindrance.ts";
import { createProcess } from "../support/process.ts";
import { createPairs, writePair } from "../support/tlsfiles.ts";
import { hindrance as serverHindrance, until } from "./serverhost.ts";

const hindrance = serverHindrance ?? (whyNot("unshare", "nsenter", "openssl") || null);
if (hindrance !== null) console.log(`the certificate of two processes: not tried, ${hindrance}`);

test("the control plane uses changed files that it cannot read", { skip: hindrance ?? false }, async () => {
  const files = mkdtempSync(join(tmpdir(), "brt-"));
  const folder = mkdtempSync(join(tmpdir(), "brt-"));
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
    for (const each of [files, folder]) rmSync(each, { recursive: true, force: true });
  }
});
