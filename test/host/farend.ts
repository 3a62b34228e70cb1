/**
 * Test fixture: the peer of a tunnel, run by another operator. It is a namespace that is reached over the lab's host, with a server
 * behind it and one of three independent programs, configured from the peer configuration of the API.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Tunnel } from "@brume/api/vpn.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { socketOf } from "../../service/src/drivers/router/wireguard/device.ts";
import { hexOf, requestDevice } from "../../service/src/drivers/router/wireguard/uapi.ts";
import type { Lab } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";

export interface FarEnd {
  readonly namespace: string;
  /** IPv4 address of the peer itself. */
  readonly address: string;
  /** The subnet behind it, and the server there. */
  readonly cidr: string;
  readonly server: string;
  readonly serverSpace: string;
  readonly folder: string;
  run(...argv: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

/** `number` from 1 to 99 identifies the peer in its lab. */
export async function createFarEnd(lab: Lab, number: number): Promise<FarEnd> {
  const [namespace, serverSpace] = [`lab-${lab.tag}-e${number}`, `lab-${lab.tag}-s${number}`];
  const folder = mkdtempSync(join(tmpdir(), "brf-"));
  const [address, cidr, server] = [`198.18.${number}.2`, `10.24.${number}.0/24`, `10.24.${number}.2`];
  const run = (...argv: readonly string[]) => exec.run(["ip", "netns", "exec", namespace, ...argv]);
  await lab.ip(null, [
    `netns add ${namespace}`,
    `netns add ${serverSpace}`,
    `link add e${number} netns ${lab.machine} type veth peer name up0 netns ${namespace}`,
    `link add in0 netns ${namespace} type veth peer name eth0 netns ${serverSpace}`,
  ]);
  await lab.ip(lab.machine, [`addr add 198.18.${number}.1/24 dev e${number}`, `link set e${number} up`]);
  await lab.ip(namespace, [
    "link set lo up",
    `addr add ${address}/24 dev up0`,
    "link set up0 up",
    `addr add 10.24.${number}.1/24 dev in0`,
    "link set in0 up",
    `route add default via 198.18.${number}.1`,
  ]);
  await run("sysctl", "-qew", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0");
  await lab.ip(serverSpace, [
    "link set lo up",
    `addr add ${server}/24 dev eth0`,
    "link set eth0 up",
    `route add default via 10.24.${number}.1`,
  ]);
  return {
    namespace,
    address,
    cidr,
    server,
    serverSpace,
    folder,
    run,
    async close() {
      for (const space of [namespace, serverSpace]) {
        const pids = await exec.run(["ip", "netns", "pids", space]).catch(() => "");
        for (const pid of pids.split("\n").filter(Boolean)) {
          const child = exec.find(Number(pid));
          if (child !== null) exec.signal(child, "SIGKILL");
        }
        await exec.run(["ip", "netns", "del", space]).catch(() => {});
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a WireGuard for the peer; `configure` takes a wg-quick(8) configuration. */
export async function startWireguard(
  end: FarEnd,
  device: string,
): Promise<{
  readonly device: string;
  configure(tunnel: Tunnel, privateKey: string, back: string): Promise<void>;
}> {
  await exec.startDetached(["ip", "netns", "exec", end.namespace, "wireguard-go", "-f", device], {
    environment: { WG_PROCESS_FOREGROUND: "1" },
    output: join(end.folder, "wireguard.out"),
  });
  await until("the far device", () => requestDevice(socketOf(device), "get=1\n\n").catch(() => null));
  await exec.run(["ip", "-n", end.namespace, "link", "set", device, "up"]);
  return {
    device,
    async configure({ PeerConfig }, privateKey, back) {
      const valueOf = (name: string): string => new RegExp(`^${name} = (.*)$`, "m").exec(PeerConfig)?.[1] ?? "";
      const request = [
        "set=1",
        `private_key=${hexOf(privateKey)}`,
        `listen_port=${valueOf("ListenPort") || "51821"}`,
        "replace_peers=true",
        `public_key=${hexOf(valueOf("PublicKey"))}`,
        `endpoint=${valueOf("Endpoint")}`,
        "persistent_keepalive_interval=1",
        ...valueOf("AllowedIPs")
          .split(", ")
          .map((block) => `allowed_ip=${block}`),
        "\n",
      ];
      await requestDevice(socketOf(device), request.join("\n"));
      await exec.run(["ip", "-n", end.namespace, "route", "replace", back, "dev", device]);
    },
  };
}

/** Debian cannot install Libreswan together with strongSwan, so it is only unpacked. */
const unpacked = resolve(import.meta.dirname, "../../.engines/libreswan");
const pluto = "/usr/libexec/ipsec/pluto";
export const noLibreswan = existsSync(join(unpacked, pluto)) ? false : `needs Libreswan, unpacked in ${unpacked}`;

/** Starts Libreswan with this complete configuration; the result returns its log so far. */
export async function startLibreswan(end: FarEnd, config: string, sharedKey: string): Promise<() => string> {
  const folder = join(end.folder, "pluto");
  const environment = { LD_LIBRARY_PATH: `${unpacked}/usr/lib/x86_64-linux-gnu` };
  for (const name of ["", "nss", "run"]) mkdirSync(join(folder, name), { recursive: true });
  const secrets = /^# In ipsec\.secrets: (.*)$/m.exec(config)?.[1] ?? "";
  writeFileSync(join(folder, "ipsec.conf"), `config setup\n${config}`);
  writeFileSync(join(folder, "secrets"), `${secrets.replace("<SharedKey>", sharedKey)}\n`);
  await exec.run([`${unpacked}/usr/bin/certutil`, "-N", "-d", `sql:${folder}/nss`, "--empty-password"], {
    environment,
  });
  // It runs its programs from their installed paths; each process in a namespace has its own mounts.
  const script = `mount --bind ${unpacked}/usr/libexec /usr/libexec && exec ${pluto} "$@"`;
  const files = ["--config", `${folder}/ipsec.conf`, "--secretsfile", `${folder}/secrets`];
  const folders = ["--rundir", `${folder}/run`, "--nssdir", `${folder}/nss`, "--ipsecdir", folder];
  await exec.startDetached(
    [
      "ip",
      "netns",
      "exec",
      end.namespace,
      "sh",
      "-c",
      script,
      "pluto",
      "--nofork",
      "--stderrlog",
      ...files,
      ...folders,
    ],
    { environment, output: join(folder, "log") },
  );
  const readLog = () => readFileSync(join(folder, "log"), "latin1");
  await until("Libreswan listens", async () => readLog().includes("loading secrets from"));
  return readLog;
}
