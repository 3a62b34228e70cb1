/**
 * Test fixture of the VPN tests: two sites on one wire, the edge of the driver under test and an independent peer, each a namespace
 * with a server behind it. All names are unique, and everything is removed afterwards, also after a failure.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exec } from "../../service/src/drivers/exec.ts";
import type { Edge } from "../../service/src/drivers/router/ipsec/ipsec.ts";
import { guard } from "../support/guard.ts";
import { until } from "../support/waituntil.ts";

export interface Site {
  /** The edge, and the server behind it. */
  readonly namespace: string;
  readonly server: string;
  readonly edge: Edge;
}

export interface VpnFixture {
  /** The site of the driver; its network is 10.24.1.0/24, its edge 192.0.2.1, its server 10.24.1.2. */
  readonly here: Site;
  /** 10.24.2.0/24 and 10.24.3.0/24, edges 192.0.2.2 and 192.0.2.3, servers 10.24.2.2 and 10.24.3.2. */
  readonly far: Site;
  readonly folder: string;
  /** Returns whether one echo comes back to the server here within a second. */
  ping(to: string, ...options: readonly string[]): Promise<boolean>;
  /** Pings until an echo comes back, or rejects after a minute. A peer may drop the first packets, because it is up later than this end. */
  reaches(to: string, ...options: readonly string[]): Promise<boolean>;
  inSite(site: Site, ...argv: readonly string[]): Promise<string>;
  end(): Promise<void>;
}

let fixtures = 0;

export async function createVpnFixture(): Promise<VpnFixture> {
  const tag = `vt${process.pid.toString(36)}${(fixtures++).toString(36)}`;
  const folder = mkdtempSync(join(tmpdir(), "brume-vpn-"));
  guard({ spaces: `${tag}[es][12]`, tag, folder });
  const siteOf = (number: number): Site => {
    const namespace = `${tag}e${number}`;
    return {
      namespace,
      server: `${tag}s${number}`,
      edge: {
        namespace,
        address: `192.0.2.${number}`,
        cidr: `10.24.${number}.0/24`,
        gateway: `10.24.${number}.1`,
      },
    };
  };
  const [here, far] = [siteOf(1), siteOf(2)];
  const batch = (namespace: string | null, lines: readonly string[]) =>
    exec.run(["ip", ...(namespace === null ? [] : ["-n", namespace]), "-batch", "-"], {
      stdin: `${lines.join("\n")}\n`,
    });
  const sites = [here, far];
  await batch(null, [
    ...sites.flatMap(({ namespace, server }) => [`netns add ${namespace}`, `netns add ${server}`]),
    `link add up0 netns ${here.namespace} type veth peer name up0 netns ${far.namespace}`,
    ...sites.map((site) => `link add p1 netns ${site.namespace} type veth peer name eth0 netns ${site.server}`),
  ]);
  for (const { namespace, server, edge } of sites) {
    const more = edge === far.edge;
    await batch(namespace, [
      "link set lo up",
      `addr add ${edge.address}/24 dev up0`,
      ...(more ? ["addr add 192.0.2.3/24 dev up0"] : []),
      "link set up0 up",
      "link add br0 type bridge",
      `addr add ${edge.gateway}/24 dev br0`,
      ...(more ? ["addr add 10.24.3.1/24 dev br0"] : []),
      "link set p1 master br0",
      "link set br0 up",
      "link set p1 up",
    ]);
    await exec.run(["ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1"]);
    const settings = ["net.bridge.bridge-nf-call-iptables=0", "net.ipv4.conf.all.rp_filter=0"];
    await exec.run(["ip", "netns", "exec", namespace, "sysctl", "-qew", ...settings]);
    await batch(server, [
      "link set lo up",
      `addr add ${edge.cidr.replace(".0/", ".2/")} dev eth0`,
      ...(more ? ["addr add 10.24.3.2/24 dev eth0"] : []),
      "link set eth0 up",
      `route add default via ${edge.gateway}`,
    ]);
  }
  const echoed = (argv: readonly string[]) =>
    exec
      .run(["ip", "netns", "exec", here.server, "ping", "-c", "1", "-W", "1", "-q", ...argv])
      .then(() => true)
      .catch(() => false);
  return {
    here,
    far,
    folder,
    ping: (to, ...options) => echoed([...options, to]),
    reaches: (to, ...options) => until(`an echo of ${to}`, () => echoed([...options, to]), 60_000),
    inSite: (site, ...argv) => exec.run(["ip", "netns", "exec", site.namespace, ...argv]),
    async end() {
      for (const namespace of sites.flatMap((site) => [site.namespace, site.server])) {
        const pids = await exec.run(["ip", "netns", "pids", namespace]).catch(() => "");
        for (const pid of pids.split("\n").filter(Boolean)) {
          const child = exec.find(Number(pid));
          if (child !== null) exec.signal(child, "SIGKILL");
        }
        await exec.run(["ip", "netns", "del", namespace]).catch(() => {});
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
