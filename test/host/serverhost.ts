/**
 * Test fixture: Brume as an operator runs it, with real servers. It runs in a process that can be killed, in a namespace that
 * serves as the host, so that test runs and an installation do not interfere. A proxy that outlives it serves the API; guests are
 * reached by SSH from the namespace, as from a shell on the host.
 */

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Action } from "@brume/api/action.ts";
import type { Client } from "@brume/api/client.ts";
import type { Server } from "@brume/api/server.ts";
import type { CreateServerInput } from "@brume/api/serverinput.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { findProcesses } from "../../service/src/drivers/machine/qemu/process.ts";
import { createLinux } from "../../service/src/drivers/router/linux/linux.ts";
import { withoutPackets } from "../../service/src/drivers/router/linux/snapshot.ts";
import { tagOf } from "../../service/src/drivers/router/model/name.ts";
import type { Kind } from "../support/databases.ts";
import { guard } from "../support/guard.ts";
import { whyNot } from "../support/hindrance.ts";
import { copyAccelerator, findCapabilities } from "../support/machinelab.ts";
import { createLab, type Lab, hindrance as labHindrance } from "../support/netnslab.ts";
import { createProcess, type Process } from "../support/process.ts";
import { until } from "../support/waituntil.ts";
import { createKey, type Key } from "./imageguest.ts";
import { openProxy } from "./networkprocess.ts";
import { pool } from "./routerfixture.ts";

const lacks = labHindrance ?? (whyNot("ssh", "ssh-keygen", "nsenter", "unshare", "busybox") || null);
const found = lacks === null ? await findCapabilities() : { hindrance: lacks };
/** The reason why real servers cannot run here; null: they can. */
export const hindrance: string | null = "hindrance" in found ? found.hindrance : null;

/** Milliseconds for the boot of a guest under emulation on a busy host. */
export const actionTimeout = 150_000;
/** The same as in `choose.ts`. */
const firstUid = 700_000;

/** Roots of control groups: one hierarchy (v2), or one for each controller (v1). */
const groupRoots = ["", "cpu", "memory", "pids"].map((name) => join("/sys/fs/cgroup", name));

/** Mounts /sys of the namespace, so that its devices are those of the simulated host, with the control groups of the real one. */
const enter = `
mount --make-rprivate /sys
exec 9</sys/fs/cgroup
mount -t sysfs brume /sys
mount -c --rbind /proc/self/fd/9 /sys/fs/cgroup
exec 9<&-
exec "$@"
`;

export interface Traces {
  readonly servers: readonly string[];
  readonly images: readonly string[];
  readonly processes: readonly number[];
  /** NICs that are in no network. */
  readonly taps: readonly string[];
  readonly namespaces: readonly string[];
  /** NICs by the namespace of their network. */
  readonly ports: readonly string[];
  /** DHCP leases, one file per NIC. */
  readonly leases: readonly string[];
  /** MAC and IP addresses in the rules of the networks. */
  readonly addresses: readonly string[];
  readonly groups: readonly string[];
}

export interface ServerHost {
  readonly lab: Lab;
  readonly brume: Process;
  readonly client: Client;
  readonly tag: string;
  readonly key: Key;
  /** The SSH key in the API. */
  readonly keyId: number;
  /** Standard output of a command in the guest, or null when ssh or the command fails. */
  ssh(
    address: string,
    command: string,
    by?: { readonly password?: string; readonly from?: string },
  ): Promise<string | null>;
  /** As `ssh`; throws when the command fails. */
  run(address: string, command: string): Promise<string>;
  /** Runs a script of `scripts/` with the settings of the service. `output`: standard output and error. */
  command(script: string, ...args: string[]): Promise<{ readonly status: number | null; readonly output: string }>;
  /** Creates a server with the key and waits until it accepts SSH. */
  create(spec: Partial<CreateServerInput> & { readonly Name: string }): Promise<Server>;
  read(id: number): Promise<Server>;
  /** Runs an action and resolves to it when it has ended, also if it failed. */
  act(id: number, order: Parameters<Client["startAction"]>[0]["body"]): Promise<Action>;
  ended(server: number, action: number): Promise<Action>;
  /** Resolves to the newest action of a server when it has ended. */
  lastAction(server: number): Promise<Action>;
  delete(id: number): Promise<void>;
  pidOf(id: number): number | null;
  /** Returns everything that servers have or leave on the host. */
  traces(): Promise<Traces>;
  close(): Promise<void>;
}

/** Addresses in rules; the address of a block itself is not counted. */
const ofServers = /\b02:(?:[0-9a-f]{2}:){4}[0-9a-f]{2}\b|\b10\.63\.\d+\.(?!0\b)\d+\b/g;

const list = (path: string): string[] => (existsSync(path) ? readdirSync(path).sort() : []);
/** `MAC,address` of each. */
const leasesIn = (path: string): string[] =>
  (existsSync(path) ? readFileSync(path, "utf8").match(/^[^,]+,[^,]+/gm) : null) ?? [];

/** `more`: additional settings. */
export async function createServerHost(
  more: Readonly<Record<string, string>> = {},
  kind: Kind = "sqlite",
): Promise<ServerHost> {
  const lab = await createLab();
  const folder = mkdtempSync(join(tmpdir(), "brs-"));
  const tag = tagOf(folder);
  const runFolder = `/run/brume-${tag}`;
  for (const each of [folder, runFolder]) guard({ spaces: `brume-${tag}-.*`, tag, folder: each });
  copyAccelerator(folder);
  const script = join(lab.runFolder, "enter");
  writeFileSync(script, enter);
  const askpass = join(lab.runFolder, "askpass");
  writeFileSync(askpass, '#!/bin/sh\nprintf "%s\\n" "$BRUME_TEST_PASSWORD"\n', { mode: 0o700 });
  const key = createKey(lab.runFolder);
  const proxy = await openProxy(lab);
  const starting = createProcess(kind, {
    folder,
    prefix: `exec nsenter --net=/run/netns/${lab.machine} unshare -m --propagation unchanged sh ${script} "$0" "$@";`,
    environment: {
      BRUME_LISTEN: `127.0.0.1:${proxy.port}`,
      BRUME_PUBLIC_POOL: pool,
      BRUME_SIMULATE: "0",
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(lab.runFolder, "compiled"),
      ...more,
    },
  });
  const brume = await starting.catch(async (error: unknown) => {
    proxy.close();
    await lab.close();
    throw error;
  });

  const ssh: ServerHost["ssh"] = (address, command, { password, from = lab.machine } = {}) => {
    const login =
      password === undefined
        ? ["-i", key.path, "-o", "BatchMode=yes"]
        : ["-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"];
    const rest = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=15"];
    const options = [...login, ...rest.flatMap((option) => ["-o", option])];
    const env = { ...process.env, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: "force", BRUME_TEST_PASSWORD: password };
    const child = spawn("nsenter", [`--net=/run/netns/${from}`, "ssh", ...options, `root@${address}`, command], {
      env,
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 60_000,
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    return new Promise((done) => child.once("close", (code) => done(code === 0 ? output.trim() : null)));
  };

  const host: ServerHost = {
    lab,
    brume,
    get client() {
      return brume.client;
    },
    tag,
    key,
    keyId: (await brume.client.createSshKey({ body: { Title: "test", PublicKey: key.line } })).ID,
    ssh,
    async run(address, command) {
      const output = await ssh(address, command);
      if (output === null) throw new Error(`${address}: ${command} failed`);
      return output;
    },
    command(name, ...args) {
      const path = resolve(import.meta.dirname, "../../scripts", name);
      const space = [`--net=/run/netns/${lab.machine}`, "unshare", "-m", "--propagation", "unchanged", "sh", script];
      const child = spawn("nsenter", [...space, process.execPath, path, ...args], {
        env: { ...process.env, ...brume.environment },
        stdio: ["ignore", "pipe", "pipe"],
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => (output += text));
      return new Promise((done) => child.once("close", (status) => done({ status, output })));
    },
    async create(spec) {
      const body = { CPU: 1, RAM: 128, HDD: 1, SshKeys: [host.keyId], WaitFor: "Ssh" as const, ...spec };
      const { ID } = await host.client.createServer({ body });
      const action = await host.lastAction(ID);
      if (action.State !== "Completed") throw new Error(`server ${ID}: ${JSON.stringify(action)}`);
      return host.read(ID);
    },
    read: (id) => host.client.readServer({ path: { id } }),
    async act(id, body) {
      return host.ended(id, (await host.client.startAction({ path: { id }, body })).ID);
    },
    ended: (id, actionID) => host.client.waitFor("readAction", { path: { id, actionID } }, { timeout: actionTimeout }),
    async lastAction(id) {
      const [last] = await host.client.listActions({ path: { id } });
      if (last === undefined) throw new Error(`server ${id} has no action`);
      return host.ended(id, last.ID);
    },
    async delete(id) {
      await host.client.deleteServer({ path: { id } }, { wait: 60 });
      await until(`server ${id} is gone`, async () => (await host.client.listServers()).every(({ ID }) => ID !== id));
    },
    pidOf: (id) => findProcesses(exec, tag, firstUid).get(id)?.pid ?? null,
    async traces() {
      const spaces = list("/run/netns").filter((name) => name.startsWith(`brume-${tag}-`));
      const inside = await Promise.all(
        spaces.map(async (space) => {
          const links = await lab.run(space, ["ip", "-br", "link"]);
          return {
            ports: [...links.matchAll(/^(p[0-9a-z]+)[@ ]/gm)].map(([, port]) => `${space} ${port}`),
            rules: withoutPackets(await lab.run(space, ["nft", "-s", "list", "ruleset"])),
          };
        }),
      );
      const leases = list(runFolder).flatMap((name) => leasesIn(join(runFolder, name, "ports")));
      const groups = groupRoots.flatMap((root) => list(join(root, `brume-${tag}`)));
      const names = (await lab.run(lab.machine, ["ip", "-br", "link"])).matchAll(/^(\S+?)[@ ]/gm);
      return {
        servers: list(join(folder, "servers")),
        images: list(join(folder, "images")),
        processes: [...findProcesses(exec, tag, firstUid).keys()].sort((a, b) => a - b),
        taps: [...names].map(([, name = ""]) => name).filter((name) => new RegExp(`^b${tag}[tx]`).test(name)),
        namespaces: spaces,
        ports: inside.flatMap(({ ports }) => ports).sort(),
        leases: leases.sort(),
        addresses: [...new Set(inside.flatMap(({ rules }) => rules.match(ofServers) ?? []))].sort(),
        groups: [...new Set(groups.filter((name) => /^[0-9]+$/.test(name)))],
      };
    },
    async close() {
      await brume.close();
      proxy.close();
      for (const { pid } of findProcesses(exec, tag, firstUid).values()) process.kill(pid, "SIGKILL");
      const { capabilities } = lab;
      const last = createLinux({
        exec,
        opened: [],
        tag,
        hostNamespace: lab.machine,
        runFolder,
        capabilities,
        tunnels: [],
        now: Date.now,
      });
      for (const { id } of (await last.observe()).networks) await last.remove(id);
      await exec.run(["ip", "netns", "del", `brume-${tag}_try`]).catch(() => {});
      await last.close();
      for (const root of groupRoots) {
        const above = join(root, `brume-${tag}`);
        for (const path of [
          ...list(above)
            .filter((name) => /^[0-9]+$/.test(name))
            .map((name) => join(above, name)),
          above,
        ])
          await exec.run(["rmdir", path]).catch(() => {});
      }
      rmSync(runFolder, { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
      await lab.close();
    },
  };
  return host;
}
