/**
 * IPsec with a second implementation: the peer runs Libreswan, configured from the peer configuration of the API. Libreswan needs ESP in
 * the kernel. Without it, the test checks the exchange until Libreswan has accepted both proposals and the key, and the kernel
 * rejects the tunnel.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import type { IpsecTunnel } from "../../service/src/drivers/router/interface.ts";
import { createIpsec, type Ipsec } from "../../service/src/drivers/router/ipsec/ipsec.ts";
import { renderPeerConfig } from "../../service/src/drivers/router/model/peerconfig.ts";
import { whyNot } from "../support/hindrance.ts";
import { ipsecTunnel } from "../support/tunnelspec.ts";
import { until } from "../support/waituntil.ts";
import { createVpnFixture, type VpnFixture } from "./vpnfixture.ts";

/** Debian cannot install it together with strongSwan, so it is only unpacked. */
const unpacked = resolve(import.meta.dirname, "../../.engines/libreswan");
const programs = "usr/libexec/ipsec";
const skip =
  whyNot("ip", "charon-systemd", "ping") ||
  (!existsSync(join(unpacked, programs, "pluto")) && `needs Libreswan, unpacked in ${unpacked}`);

const tunnel = ipsecTunnel();

describe("IPsec against Libreswan", { skip, concurrency: false }, () => {
  let fixture: VpnFixture;
  let ipsec: Ipsec;
  let kernelEsp = false;
  const libraries = `${unpacked}/usr/lib/x86_64-linux-gnu`;
  const folder = (): string => join(fixture.folder, "pluto");
  const readLog = (): string => readFileSync(join(folder(), "log"), "latin1");

  /** Starts Libreswan with this complete configuration. */
  const start = async (desired: IpsecTunnel): Promise<void> => {
    const text = renderPeerConfig(desired, { address: "192.0.2.1", wireguard: null }, "libreswan");
    assert.ok(text !== null);
    const policy = desired.ikeVersion === 1 ? "    ikev1-policy=accept\n" : "";
    const secrets = /^# In ipsec\.secrets: (.*)$/m.exec(text)?.[1] ?? "";
    // This namespace has no default route.
    const conn = text.replace("left=%defaultroute", "left=192.0.2.2");
    for (const name of ["", "nss", "run"]) mkdirSync(join(folder(), name), { recursive: true });
    writeFileSync(join(folder(), "ipsec.conf"), `config setup\n${policy}${conn}`);
    writeFileSync(join(folder(), "secrets"), `${secrets.replace("<SharedKey>", desired.sharedKey)}\n`);
    const nss = `sql:${folder()}/nss`;
    await exec.run([`${unpacked}/usr/bin/certutil`, "-N", "-d", nss, "--empty-password"], {
      environment: { LD_LIBRARY_PATH: libraries },
    });
    // It runs its programs from their installed paths, with an empty environment; each process in a namespace has its own
    // mounts, so both are arranged for it alone.
    writeFileSync(join(folder(), "ld.conf"), `${libraries}\n`);
    const script = [
      `ldconfig -X -f ${folder()}/ld.conf -C ${folder()}/ld.cache`,
      `mount --bind ${folder()}/ld.cache /etc/ld.so.cache`,
      `mount --bind ${unpacked}/usr/libexec /usr/libexec`,
      `exec /${programs}/pluto "$@"`,
    ].join(" && ");
    const files = ["--config", `${folder()}/ipsec.conf`, "--secretsfile", `${folder()}/secrets`];
    const folders = ["--rundir", `${folder()}/run`, "--nssdir", `${folder()}/nss`, "--ipsecdir", folder()];
    await exec.startDetached(
      [
        "ip",
        "netns",
        "exec",
        fixture.far.namespace,
        "sh",
        "-c",
        script,
        "pluto",
        "--nofork",
        "--stderrlog",
        ...files,
        ...folders,
      ],
      { output: join(folder(), "log") },
    );
    await until("Libreswan listens", async () => readLog().includes("loading secrets from"));
  };

  before(async () => {
    fixture = await createVpnFixture();
    const esp = ["proto", "esp", "spi", "0x7777", "mode", "tunnel", "enc", "cbc(aes)", `0x${"11".repeat(16)}`];
    const state = ["src", "127.0.0.9", "dst", "127.0.0.8", ...esp, "auth", "hmac(sha256)", `0x${"22".repeat(32)}`];
    kernelEsp = await fixture.inSite(fixture.far, "ip", "xfrm", "state", "add", ...state).then(
      () => true,
      () => false,
    );
    if (kernelEsp) await fixture.inSite(fixture.far, "ip", "xfrm", "state", "flush");
  });
  after(() => fixture.end());

  const suites: readonly Partial<IpsecTunnel>[] = [
    {},
    { encryption: "aes128gcm", digest: "sha384", dhGroup: 20 },
    { encryption: "aes128", digest: "sha512", dhGroup: 31, perfectForwardSecrecy: false },
    { encryption: "aes256", digest: "sha1", dhGroup: 5, ikeVersion: 1 },
    { encryption: "3des", digest: "sha1", dhGroup: 15, ikeVersion: 1, perfectForwardSecrecy: false },
    { localIdentity: "here.example", peerIdentity: "office@far.example" },
    { sharedKey: "Quite-Another-Key-0123456789" },
  ];
  for (const change of suites)
    test(`agrees on ${JSON.stringify(change)}`, async (t) => {
      const changed = { ...tunnel, ...change };
      await fixture.end();
      fixture = await createVpnFixture();
      ipsec = createIpsec({
        exec,
        runFolder: fixture.folder,
        kernelEsp: false,
        now: Date.now,
        random: randomBytes,
        lookup: async (host) => host,
        retryAfter: 500,
        log: () => {},
      });
      try {
        await start(changed);
        // The last variant must fail.
        await ipsec.apply(fixture.here.edge, [{ ...changed, sharedKey: tunnel.sharedKey }]);
        const status = async () => (await ipsec.observe()).get(fixture.here.namespace)?.[0];
        if (changed.sharedKey !== tunnel.sharedKey) {
          const reason = await until("a reason", async () => (await status())?.reason);
          assert.equal(reason.fault, "authentication_failed", reason.detail);
        } else if (kernelEsp) {
          await until("tunnel up", async () => (await status())?.state === "up");
          assert.ok(await fixture.reaches("10.24.2.2"));
        } else {
          t.diagnostic(
            "this kernel has no ESP, and Debian's Libreswan is built with XFRM and XFRMI only: both proposals and the key are agreed on, no packet goes through",
          );
          await until("Libreswan knows our key", async () =>
            /established IKE SA; authenticated peer|IKE SA established|ISAKMP SA established/.test(readLog()),
          );
          await until("Libreswan takes the proposal for ESP", async () =>
            /Add SA esp\.\S+: (Protocol not supported|Function not implemented)/.test(readLog()),
          );
        }
      } catch (error) {
        throw new Error(`${(error as Error).message}\n${readLog().split("\n").slice(-25).join("\n")}`, {
          cause: error,
        });
      } finally {
        await ipsec.remove(fixture.here.namespace);
        ipsec.close();
      }
    });
});
