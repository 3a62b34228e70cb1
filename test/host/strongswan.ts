/** Test fixture: an independent strongSwan at the peer, with its own daemon, configured by `swanctl` from the peer configuration. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exec } from "../../service/src/drivers/exec.ts";
import { until } from "../support/waituntil.ts";
import type { VpnFixture } from "./vpnfixture.ts";

export interface FarStrongswan {
  /** Replaces the whole configuration: swanctl.conf(5). */
  load(text: string): Promise<void>;
  initiate(child: string): Promise<void>;
  terminate(ike: string): Promise<void>;
  rekey(child: string): Promise<void>;
  /** Returns the number of peers that it is connected to. */
  peers(): Promise<number>;
  /** Returns its log. */
  said(): string;
}

export async function startStrongswan(fixture: VpnFixture): Promise<FarStrongswan> {
  const folder = join(fixture.folder, "far");
  mkdirSync(folder);
  const conf = join(folder, "strongswan.conf");
  const uri = `unix://${join(folder, "vici")}`;
  writeFileSync(
    conf,
    `charon-systemd {
      load = random nonce openssl sha1 sha2 hmac kdf pem x509 revocation constraints pubkey gmp kernel-libipsec kernel-netlink socket-default vici
      install_virtual_ip = no
      plugins { vici { socket = ${uri} } kernel-libipsec { allow_peer_ts = yes } }
      filelog { f { path = ${join(folder, "log")} } }
    }`,
  );
  const environment = { STRONGSWAN_CONF: conf };
  await exec.startDetached(["ip", "netns", "exec", fixture.far.namespace, "charon-systemd"], {
    environment,
    output: join(folder, "out"),
  });
  const swanctl = (...argv: readonly string[]) => exec.run(["swanctl", ...argv, "--uri", uri], { environment });
  await until("the peer's daemon works", () => swanctl("--stats").catch(() => null));
  return {
    async load(text) {
      const file = join(folder, "swanctl.conf");
      writeFileSync(file, text);
      await swanctl("--load-all", "--clear", "--noprompt", "--file", file);
    },
    async initiate(child) {
      await swanctl("--initiate", "--child", child, "--timeout", "5");
    },
    async rekey(child) {
      await swanctl("--rekey", "--child", child);
    },
    async peers() {
      return (await swanctl("--list-sas")).match(/, ESTABLISHED, /g)?.length ?? 0;
    },
    async terminate(ike) {
      await swanctl("--terminate", "--ike", ike, "--force", "--timeout", "1").catch(() => {});
    },
    said: () => readFileSync(join(folder, "log"), "utf8"),
  };
}
