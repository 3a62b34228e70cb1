/**
 * Tests what the host supports by trying each feature in a temporary namespace; a device file, a module name or a version is no proof. The
 * results are printed at start, and the drivers choose their engines by them.
 */
import { type Log, silentLog } from "../../../base/log.ts";
import { describeTrial, logTrial, type TrialText } from "../../../base/trialtext.ts";
import type { Exec } from "../../exec.ts";
import type { Probe } from "../interface.ts";
import { flowsText } from "../nft/connectionlimits.ts";

/** What the host supports. */
export interface Capabilities {
  /** All features that a network requires; without one of them the router is simulated. */
  readonly router: boolean;
  readonly bandwidth: boolean;
  readonly dhcp: boolean;
  readonly nat: boolean;
  readonly kernelEsp: boolean;
  readonly kernelWireguard: boolean;
  readonly trials: readonly Probe[];
}

const filter = `table inet t {
  counter c { }
  chain a { counter name c ct mark set 0x1 accept; }
  chain f {
    type filter hook forward priority filter; policy drop;
    ct state established,related ct mark 0x1 accept
    meta l4proto 6 ct original proto-dst vmap { 80-90 : goto a }
    ip daddr vmap { 192.0.2.1 : goto a, 192.0.2.2-192.0.2.9 : goto a }
    tcp flags syn tcp option maxseg size set rt mtu
  }
  chain r {
    type filter hook prerouting priority mangle; policy accept;
    ct direction reply accept
    ct status dnat accept
    fib daddr type { local, broadcast, anycast, multicast } drop
  }
}
`;
const lock = `table bridge t {
  set s { type ifname . ether_addr . ipv4_addr; elements = { "p1" . 02:42:00:00:00:01 . 192.0.2.1 }; }
  chain p {
    type filter hook prerouting priority filter; policy accept;
    iifname . ether saddr . ip saddr != @s drop
  }
}
`;
const nat = "table inet n {\n  chain p { type nat hook postrouting priority srcnat; masquerade; }\n}\n";

const simulated = "Public networks are simulated";
const modules = (names: string): string => `Run as root: modprobe -a ${names}`;
/** What each trial that failed means. */
const texts = {
  namespaces: {
    consequence: simulated,
    remedy: "Start Brume on the host itself, or in a container that may create network namespaces (CAP_SYS_ADMIN)",
  },
  links: { consequence: simulated, remedy: modules("bridge veth") },
  bandwidth: {
    consequence: "Bandwidth of networks and links is not limited",
    remedy: modules("sch_tbf cls_u32 ifb act_mirred"),
  },
  firewall: { consequence: simulated, remedy: modules("nf_tables nft_ct nft_fib_inet nf_conntrack") },
  limits: { consequence: simulated, remedy: modules("nf_tables nft_connlimit") },
  lock: { consequence: simulated, remedy: modules("nf_tables nft_meta_bridge") },
  nat: { consequence: "Networks of private addresses do not reach the internet", remedy: modules("nft_masq") },
  dhcp: { consequence: "Servers get no address by DHCP", remedy: "Run as root: apt-get install dnsmasq-base" },
  tap: { consequence: "Servers have no network", remedy: `${modules("tun")}; a container also needs /dev/net/tun` },
  kernelEsp: { consequence: "IPsec runs in user space", remedy: modules("esp4") },
  kernelWireguard: { consequence: "WireGuard runs in user space", remedy: modules("wireguard") },
} as const satisfies Readonly<Record<string, TrialText>>;

/** Returns why networks are simulated: the first trial without which there are none. */
export function describeObstacle(trials: readonly Probe[]): string {
  const start = `${simulated}: `;
  const found = trials.find(({ works, detail }) => !works && detail.startsWith(start));
  return found === undefined ? "this host cannot create networks" : found.detail.slice(start.length);
}

/** Tests all features. `space`: a namespace name that is used for nothing else; it is removed again. */
export async function detect(exec: Exec, space: string, log: Log = silentLog): Promise<Capabilities> {
  const trials: Probe[] = [];
  const ip = (...args: readonly string[]) => exec.run(["ip", "-n", space, ...args]);
  const inside = (argv: readonly string[], stdin?: string) =>
    exec.run(["ip", "netns", "exec", space, ...argv], stdin === undefined ? {} : { stdin });

  async function attempt(name: string, text: TrialText, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      trials.push({ name, works: true, detail: "" });
      return true;
    } catch (error) {
      trials.push({ name, works: false, detail: describeTrial(error, text) });
      logTrial(log, name, error);
      return false;
    }
  }

  // A killed start may have left it.
  await exec.run(["ip", "netns", "del", space]).catch(() => {});
  const spaces = await attempt("namespaces", texts.namespaces, async () => {
    await exec.run(["ip", "netns", "add", space]);
    // In some containers the first command works and this one does not.
    await inside(["true"]);
  });
  const none = { router: false, bandwidth: false, dhcp: false, nat: false };
  if (!spaces) {
    await exec.run(["ip", "netns", "del", space]).catch(() => {});
    return { ...none, kernelEsp: false, kernelWireguard: false, trials };
  }
  try {
    const links = attempt("bridge and veth", texts.links, async () => {
      await ip("link", "add", "v0", "type", "veth", "peer", "name", "v1");
      await ip("link", "add", "b0", "type", "bridge");
      await ip("link", "set", "v0", "master", "b0");
      await ip("link", "set", "v0", "type", "bridge_slave", "isolated", "on");
    });
    const bandwidth = links.then(() =>
      attempt("bandwidth limits (tbf, ifb)", texts.bandwidth, async () => {
        await ip("link", "add", "i0", "type", "ifb");
        await inside(
          ["tc", "-batch", "-"],
          "qdisc replace dev v0 root tbf rate 10mbit burst 20000 latency 50ms\nqdisc replace dev v0 ingress\nfilter replace dev v0 parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev i0\n",
        );
      }),
    );
    const specs = {
      firewall: attempt("firewall (nftables inet)", texts.firewall, () => inside(["nft", "-f", "-"], filter)),
      limits: attempt("limits of connections (nftables sets of limited size, ct count)", texts.limits, () =>
        inside(["nft", "-f", "-"], flowsText({ network: 160, server: 64, packets: 100 }, "10.63.0.0/16", true)),
      ),
      lock: attempt("source lock (nftables bridge)", texts.lock, () => inside(["nft", "-f", "-"], lock)),
      nat: attempt("address translation", texts.nat, () => inside(["nft", "-f", "-"], nat)),
      dhcp: attempt("dnsmasq", texts.dhcp, () => inside(["dnsmasq", "--test", "--conf-file=/dev/null"])),
      tap: attempt("tap devices", texts.tap, () => ip("tuntap", "add", "dev", "t0", "mode", "tap")),
      kernelEsp: attempt("ESP in the kernel", texts.kernelEsp, () =>
        ip(
          "xfrm",
          "state",
          "add",
          "src",
          "127.0.0.9",
          "dst",
          "127.0.0.8",
          "proto",
          "esp",
          "spi",
          "0x77",
          "mode",
          "tunnel",
          "enc",
          "cbc(aes)",
          `0x${"11".repeat(16)}`,
          "auth",
          "hmac(sha256)",
          `0x${"22".repeat(32)}`,
        ),
      ),
      kernelWireguard: attempt("WireGuard in the kernel", texts.kernelWireguard, () =>
        ip("link", "add", "w0", "type", "wireguard"),
      ),
    };
    const names = Object.keys(specs) as (keyof typeof specs)[];
    const results = await Promise.all(names.map((name) => specs[name]));
    const works = Object.fromEntries(names.map((name, index) => [name, results[index] === true])) as Record<
      keyof typeof specs,
      boolean
    >;
    const { firewall, lock: locks, limits, tap: _, ...rest } = works;
    return {
      ...rest,
      router: (await links) && firewall && limits && locks,
      bandwidth: await bandwidth,
      trials: trials.sort((a, b) => (a.name < b.name ? -1 : 1)),
    };
  } finally {
    await exec.run(["ip", "netns", "del", space]).catch(() => {});
  }
}
