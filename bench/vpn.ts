/**
 * Compares IPsec tunnels with strongSwan's own tool in the same run: time from the request until packets pass, and the status of 100
 * tunnels. The peer is a second strongSwan. Needs root.
 *
 *     node bench/vpn.ts
 */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { exec } from "../service/src/drivers/exec.ts";
import type { IpsecTunnel } from "../service/src/drivers/router/interface.ts";
import { createIpsec } from "../service/src/drivers/router/ipsec/ipsec.ts";
import { findDaemons } from "../service/src/drivers/router/linux/daemon.ts";
import { renderPeerConfig } from "../service/src/drivers/router/model/peerconfig.ts";
import { startStrongswan } from "../test/host/strongswan.ts";
import { createVpnFixture, type VpnFixture } from "../test/host/vpnfixture.ts";
import { whyNot } from "../test/support/hindrance.ts";
import { ipsecTunnel } from "../test/support/tunnelspec.ts";
import { until } from "../test/support/waituntil.ts";

const reason = whyNot("ip", "charon-systemd", "swanctl", "ping");
if (reason) {
  console.log(`vpn: skipped, ${reason}`);
  process.exit();
}

const rounds = 5;
const many = 100;
const key = "Very-Secret-Key-0123456789-abcdef";

const tunnelOf = (id: number, peerSubnet: string): IpsecTunnel =>
  ipsecTunnel({ id, peerSubnets: [peerSubnet], peerIdentity: `n${id}.example` });
const farText = (tunnels: readonly IpsecTunnel[]): string =>
  tunnels
    .map((each) => renderPeerConfig(each, { address: "192.0.2.1", wireguard: null }))
    .join("")
    .replaceAll("<SharedKey>", key);

const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN;
async function measure(work: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

async function withFixture(work: (fixture: VpnFixture) => Promise<void>): Promise<void> {
  const fixture = await createVpnFixture();
  try {
    await work(fixture);
  } finally {
    await fixture.end();
  }
}

await withFixture(async (fixture) => {
  const far = await startStrongswan(fixture);
  const ipsec = createIpsec({
    exec,
    runFolder: fixture.folder,
    kernelEsp: false,
    now: Date.now,
    random: randomBytes,
    lookup: async (host) => host,
    log: () => {},
  });
  const { namespace } = fixture.here;
  const statuses = async () => (await ipsec.observe()).get(namespace) ?? [];
  const allUp = async () => (await statuses()).every(({ state }) => state === "up");
  const tunnel = tunnelOf(1, "10.24.2.0/24");
  await far.load(farText([tunnel]));

  const cold: number[] = [];
  const warm: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await ipsec.remove(namespace);
    await far.terminate("brume-1");
    const up = async () => {
      await until("up", allUp);
      await until("packets", () => fixture.ping("10.24.2.2"));
    };
    cold.push(
      await measure(async () => {
        await ipsec.apply(fixture.here.edge, [tunnel]);
        await up();
      }),
    );
    const changed: IpsecTunnel = { ...tunnel, localIdentity: `r${round}.example` };
    await far.load(farText([changed]));
    warm.push(
      await measure(async () => {
        await ipsec.apply(fixture.here.edge, [changed]);
        await up();
      }),
    );
    await far.load(farText([tunnel]));
  }

  // The same with the tool of strongSwan, in the running daemon.
  const conf = join(fixture.folder, namespace, "ipsec", "strongswan.conf");
  const uri = `unix://${join(fixture.folder, namespace, "ipsec", "charon.vici")}`;
  const swanctl = (...argv: readonly string[]) =>
    exec.run(["swanctl", ...argv, "--uri", uri], { environment: { STRONGSWAN_CONF: conf } });
  await ipsec.remove(namespace);
  await ipsec.apply(fixture.here.edge, [{ ...tunnel, id: 99, peer: null, peerIdentity: "nobody.example" }]);
  ipsec.close();
  const bare: number[] = [];
  const file = join(fixture.folder, "bare.conf");
  const text = farText([tunnel])
    .replace("remote_addrs = 192.0.2.1", "remote_addrs = 192.0.2.2")
    .replace("local_ts = 10.24.2.0/24", "local_ts = 10.24.1.0/24")
    .replace("remote_ts = 10.24.1.0/24", "remote_ts = 10.24.2.0/24")
    .replace(/(local \{[^}]*id = )n1\.example/, "$1192.0.2.1")
    .replace(/(remote \{[^}]*id = )192\.0\.2\.1/, "$1n1.example");
  writeFileSync(file, text);
  for (let round = 0; round < rounds; round++) {
    await far.terminate("brume-1");
    await swanctl("--terminate", "--ike", "brume-1", "--force", "--timeout", "1").catch(() => "");
    bare.push(
      await measure(async () => {
        await swanctl("--load-all", "--clear", "--noprompt", "--file", file);
        await swanctl("--initiate", "--child", "brume-1", "--timeout", "5");
        await until("packets", () => fixture.ping("10.24.2.2"));
      }),
    );
  }
  console.log(
    `tunnel up and passing after the request: ${median(cold).toFixed(0)} ms with a new daemon, ${median(warm).toFixed(0)} ms changed, swanctl in a running daemon ${median(bare).toFixed(0)} ms (ratio of changed ${(median(warm) / median(bare)).toFixed(2)})`,
  );

  const tunnels = Array.from({ length: many }, (_, index) =>
    tunnelOf(index + 1, `10.${100 + (index >> 6)}.${index & 63}.0/24`),
  );
  // libipsec at the peer needs an address in each of its networks.
  const addresses = tunnels.map(({ peerSubnets }) => `addr add ${peerSubnets[0]?.replace(".0/24", ".1/32")} dev lo\n`);
  await exec.run(["ip", "-n", fixture.far.namespace, "-batch", "-"], { stdin: addresses.join("") });
  await far.load(farText(tunnels));
  await ipsec.remove(namespace);
  const loaded = await measure(async () => {
    await ipsec.apply(fixture.here.edge, tunnels);
    await until("all up", allUp, 60_000);
  });
  const brumeRates: number[] = [];
  const tool: number[] = [];
  for (let round = 0; round < 20; round++) {
    brumeRates.push(await measure(statuses));
    tool.push(await measure(() => swanctl("--list-sas", "--raw")));
  }
  const again = await measure(() => ipsec.apply(fixture.here.edge, tunnels));
  const [child] = await findDaemons(exec, namespace, "charon-systemd");
  const memory = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child?.pid}/status`, "utf8"))?.[1];
  console.log(
    `${many} tunnels: up in ${loaded.toFixed(0)} ms, status ${median(brumeRates).toFixed(1)} ms against swanctl --list-sas ${median(tool).toFixed(1)} ms (ratio ${(median(brumeRates) / median(tool)).toFixed(2)}), the same list again ${again.toFixed(0)} ms, daemon ${(Number(memory) / 1024).toFixed(0)} MiB`,
  );
  await ipsec.remove(namespace);
  ipsec.close();
  await sleep(100);
});
