/**
 * Network namespaces for tests with real packets: one for the host, one for the internet, one for each server, connected by the driver
 * under test. On the real host they add only a few names, which are removed at the end.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Exec, exec } from "../../service/src/drivers/exec.ts";
import type { NetworkSpec, Port, Router } from "../../service/src/drivers/router/interface.ts";
import { type Capabilities, detect } from "../../service/src/drivers/router/linux/detect.ts";
import { createLinux } from "../../service/src/drivers/router/linux/linux.ts";
import { confineTools } from "../../service/src/drivers/router/linux/toolroot.ts";
import type { TunnelEngine } from "../../service/src/drivers/router/linux/tunnels.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import type { Limits } from "../../service/src/drivers/router/nft/connectionlimits.ts";
import { guard } from "./guard.ts";
import { whyNot } from "./hindrance.ts";

const unable = whyNot("ip", "tc", "nft", "sysctl", "dnsmasq", "ping", "ps");
/** For the test programs, which start in half the time with it. */
const cacheFolder = process.env["NODE_COMPILE_CACHE"];
const compileCache = cacheFolder === undefined ? {} : { NODE_COMPILE_CACHE: cacheFolder };
const capabilities = unable === false ? await detect(exec, `brume-try-${process.pid}`) : null;
/** As in the service: most programs of the driver run confined. */
const tools = capabilities === null ? exec : (await confineTools(exec)).exec;
/** Features that networks can do without, for kernels that have none. */
const optional = new Set(["ESP in the kernel", "WireGuard in the kernel"]);
const failed = capabilities?.trials.find(({ name, works }) => !works && !optional.has(name));

/** The reason why no real packets can be sent here; null: they can. */
export const hindrance: string | null = unable || (failed ? `no ${failed.name}: ${failed.detail}` : null);

/** Limits that no test reaches. */
const noLimits: Limits = { network: 1_000_000, server: 1_000_000, packets: 100_000_000 };

export interface Guest {
  readonly space: string;
  readonly port: Port;
}

export interface Lab {
  readonly tag: string;
  readonly machine: string;
  readonly internet: string;
  readonly runFolder: string;
  readonly capabilities: Capabilities;
  /** Creates a driver for the existing state, as after a restart of the service. */
  open(spec?: {
    readonly tunnels?: readonly TunnelEngine[];
    readonly exec?: Exec;
    readonly opened?: readonly string[];
    readonly limits?: Limits;
  }): Router;
  run(space: string, argv: readonly string[], stdin?: string): Promise<string>;
  /** Returns whether the command succeeds. */
  works(space: string, argv: readonly string[]): Promise<boolean>;
  ip(space: string | null, lines: readonly string[]): Promise<void>;
  /**
   * Connects a server to a port of the network: its addresses and routes are set, and the other end of its NIC is in the host's namespace.
   */
  guest(image: NetworkSpec, port: Port): Promise<Guest>;
  /** Like `guest`, but without any address. */
  bareGuest(port: Port): Promise<Guest>;
  /** Sends the first packets of connections, each from the namespace of its source address. */
  send(space: string, packets: readonly Packet[]): Promise<void>;
  /** Returns everything that the driver could leave behind, as text. */
  traces(): Promise<string>;
  /** Records packets at this hook of the namespace; in the lab's own namespaces before all rules. */
  watchAt(space: string, hook: string): Promise<void>;
  /** Returns the packets that arrived in the namespace since the last call. */
  seen(space: string): Promise<Set<string>>;
  close(): Promise<void>;
}

export const keyOf = (packet: Packet): string =>
  `${packet.protocol} ${packet.source} ${packet.sourcePort} ${packet.destination} ${packet.destinationPort}`;

/** Records every packet at the hook by protocol, addresses and ports. */
const watch = (hook: string) => `add table inet watch
delete table inet watch
table inet watch {
  set four { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; size 65535; flags dynamic; }
  set six { type ipv6_addr . ipv6_addr . inet_proto . inet_service . inet_service; size 65535; flags dynamic; }
  set pings { type ipv4_addr . ipv4_addr; size 65535; flags dynamic; }
  chain input {
    type filter hook ${hook}; policy accept;
    meta l4proto { tcp, udp } add @four { ip saddr . ip daddr . meta l4proto . th sport . th dport }
    meta l4proto { tcp, udp } add @six { ip6 saddr . ip6 daddr . meta l4proto . th sport . th dport }
    icmp type echo-request add @pings { ip saddr . ip daddr }
  }
}
`;

const sets = ["four", "six", "pings"];

const sender = join(import.meta.dirname, "packetsender.ts");
const numbers: Readonly<Record<string, number>> = { tcp: 6, udp: 17 };

/** Starts a sender in the namespace, which ends with this process. The result sends packets, and resolves when they are sent. */
function startSender(space: string): (packets: readonly Packet[]) => Promise<void> {
  const child = spawn("ip", ["netns", "exec", space, process.execPath, sender], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...compileCache },
  });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  child.stdin.on("error", () => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async (packets) => {
    child.stdin.write(`${JSON.stringify(packets)}\n`);
    const next: IteratorResult<string, unknown> = await lines.next();
    if (next.done === true) throw new Error(`the sender in ${space} has ended`);
  };
}

export async function createLab(): Promise<Lab> {
  if (capabilities === null) throw new Error(`no lab: ${hindrance}`);
  const tag = BigInt(`0x${randomBytes(4).toString("hex")}`)
    .toString(36)
    .padStart(3, "0")
    .slice(-3);
  // Not in /dev: the root of a daemon has a /dev of its own, which contains only what the daemon needs.
  const runFolder = mkdtempSync(join(tmpdir().startsWith("/dev/") ? "/tmp" : tmpdir(), "brl-"));
  guard({ spaces: `(lab|brume)-${tag}-.*`, tag, folder: runFolder });
  const machine = `lab-${tag}-m`;
  const given = {
    exec: tools,
    tag,
    hostNamespace: machine,
    runFolder,
    capabilities,
    tunnels: [],
    opened: [],
    limits: noLimits,
    now: Date.now,
  };
  const internet = `lab-${tag}-i`;
  const spaces: string[] = [];
  const routers: Router[] = [];
  /** One for each namespace: the start of Node takes longer than all else that a test does with its packets. */
  const senders = new Map<string, ReturnType<typeof startSender>>();

  const run: Lab["run"] = (space, argv, stdin) =>
    exec.run(["ip", "netns", "exec", space, ...argv], {
      timeout: 60_000,
      environment: compileCache,
      ...(stdin !== undefined && { stdin }),
    });
  const ip: Lab["ip"] = async (space, lines) => {
    await exec.run(["ip", ...(space === null ? [] : ["-n", space]), "-batch", "-"], { stdin: `${lines.join("\n")}\n` });
  };
  const watchAt: Lab["watchAt"] = async (space, hook) => void (await run(space, ["nft", "-f", "-"], watch(hook)));
  const add = async (space: string) => {
    await exec.run(["ip", "netns", "add", space]);
    spaces.push(space);
    await ip(space, ["link set lo up"]);
    await watchAt(space, "prerouting priority raw");
    await run(space, ["sysctl", "-eqw", "net.ipv4.icmp_ratelimit=0", "net.ipv4.conf.all.rp_filter=0"]);
  };

  await add(machine);
  await add(internet);
  await ip(null, [`link add w0 netns ${machine} type veth peer name w1 netns ${internet}`]);
  // Neighbour solicitations for forwarded packets need a link-local address; the kernel's own is tentative for the first seconds.
  const addWan = (space: string, device: string, n: number) =>
    ip(space, [
      `addr add 198.18.0.${n}/24 dev ${device}`,
      `addr add fd18::${n}/64 dev ${device} nodad`,
      `addr add fe80::${n}/64 dev ${device} nodad`,
      `link set ${device} up`,
    ]);
  await addWan(machine, "w0", 1);
  await addWan(internet, "w1", 2);
  await ip(internet, [
    "route add default via 198.18.0.1",
    "route add default via fd18::1",
    // Many senders at once.
    "route add local 198.51.100.0/24 dev lo",
    "route add local 203.0.113.0/24 dev lo",
    "addr add fd51::1/128 dev lo nodad",
    "addr add fd51::2/128 dev lo nodad",
  ]);
  await ip(machine, [
    "route add 198.51.100.0/24 via 198.18.0.2",
    "route add 203.0.113.0/24 via 198.18.0.2",
    "route add fd51::/64 via fd18::2",
  ]);

  const bareGuest: Lab["bareGuest"] = async (port) => {
    const space = `lab-${tag}-g${port.id}`;
    if (!spaces.includes(space)) await add(space);
    await ip(null, [
      `link add ${port.device} netns ${machine} type veth peer name eth0 address ${port.mac} netns ${space}`,
    ]);
    await ip(space, ["link set eth0 up"]);
    return { space, port };
  };

  return {
    tag,
    machine,
    internet,
    runFolder,
    capabilities,
    open(spec = {}) {
      const router = createLinux({ ...given, ...spec });
      routers.push(router);
      return router;
    },
    run,
    works: (space, argv) =>
      run(space, argv).then(
        () => true,
        () => false,
      ),
    ip,
    bareGuest,
    watchAt,
    async guest(image, port) {
      const guest = await bareGuest(port);
      const lengthOf = (cidr: string) => cidr.split("/")[1];
      await ip(
        guest.space,
        port.addresses.flatMap((address) => {
          const block = address.includes(":") ? image.v6 : image.v4;
          if (block === null) return [];
          const noDad = address.includes(":") ? " nodad" : "";
          return [
            `addr add ${address}/${lengthOf(block.cidr)} dev eth0${noDad}`,
            ...(block.gateway === null ? [] : [`route add default via ${block.gateway}`]),
          ];
        }),
      );
      return guest;
    },
    async send(space, packets) {
      if (packets.length === 0) return;
      const send = senders.get(space) ?? startSender(space);
      senders.set(space, send);
      await send(packets);
    },
    async traces() {
      const observations = await Promise.all([
        run(machine, ["ip", "-o", "link"]),
        run(machine, ["ip", "route"]),
        run(machine, ["ip", "-6", "route"]),
        run(machine, ["nft", "list", "ruleset"]),
        exec.run(["ip", "netns", "list"]),
        exec.run(["ps", "-eo", "args"]),
      ]);
      const named = observations
        .slice(4)
        .map((text) => text.split("\n").filter((line) => line.includes(`brume-${tag}-`) || line.includes(runFolder)));
      return JSON.stringify([observations.slice(0, 4), named, readdirSync(runFolder)], null, 1);
    },
    async seen(space) {
      const keys = new Set<string>();
      const { nftables } = JSON.parse(await run(space, ["nft", "-j", "list", "table", "inet", "watch"])) as {
        nftables: { set?: { name: string; elem?: unknown[] } }[];
      };
      for (const { set } of nftables)
        for (const element of set?.elem ?? []) {
          const wrapped = (element as { elem?: { val: { concat: unknown[] } } }).elem?.val ?? element;
          const [source, destination, protocol, sourcePort, destinationPort] = (wrapped as { concat: unknown[] })
            .concat;
          keys.add(
            set?.name === "pings"
              ? `1 ${String(source)} 0 ${String(destination)} 0`
              : `${numbers[String(protocol)] ?? Number(protocol)} ${String(source)} ${Number(sourcePort)} ${String(destination)} ${Number(destinationPort)}`,
          );
        }
      await run(space, ["nft", "-f", "-"], sets.map((set) => `flush set inet watch ${set}\n`).join(""));
      return keys;
    },
    async close() {
      for (const router of routers) await router.close();
      const last = createLinux(given);
      for (const { id } of (await last.observe()).networks) await last.remove(id);
      for (const space of spaces) {
        for (const pid of (await exec.run(["ip", "netns", "pids", space])).split("\n").filter(Boolean)) {
          const child = exec.find(Number(pid));
          if (child !== null) exec.signal(child, "SIGKILL");
        }
        await exec.run(["ip", "netns", "del", space]);
      }
      rmSync(runFolder, { recursive: true, force: true });
    },
  };
}
