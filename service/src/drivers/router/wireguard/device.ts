/**
 * Manages the WireGuard device of a network: a device of the kernel, configured with wg(8), or a wireguard-go process in the network's
 * namespace, configured over its socket. Both have the same interface; only the process can end unexpectedly.
 */
import { mkdir, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { endOfLog, trimLog } from "../../../base/logfile.ts";
import type { Exec } from "../../exec.ts";
import { keepRights } from "../../privateroot.ts";
import { createConfine } from "../linux/confine.ts";
import { stopDaemons, waitForStart } from "../linux/daemon.ts";
import { parseDump, renderConfig } from "./config.ts";
import { type PeerState, parseDevice, renderDevice, requestDevice, type WireguardDevice, watchDevice } from "./uapi.ts";

/** The namespace and the name of a device. */
export interface DevicePlace {
  readonly namespace: string;
  /** Unique on the host, because all installations share the folder of sockets; at most 15 characters. */
  readonly device: string;
}

/** Creates and configures devices of one kind. */
export interface Holder {
  /** Name in log lines. */
  readonly name: string;
  /** Reads the device. Rejects when it does not exist or does not respond within `limit` milliseconds. */
  read(place: DevicePlace, limit?: number): Promise<WireguardDevice<PeerState>>;
  /** Creates the device. */
  start(place: DevicePlace): Promise<void>;
  /** Changes the device from `present` to `desired`. */
  set(place: DevicePlace, desired: WireguardDevice, present: WireguardDevice): Promise<void>;
  /** Ends the sessions of these peers, by public key. */
  forget(place: DevicePlace, peers: readonly string[]): Promise<void>;
  /** Removes the device and its files. An unknown device is ignored. */
  stop(place: DevicePlace): Promise<void>;
  /** Calls `lost` once when the device is gone. Returns a function that stops watching. */
  watch(place: DevicePlace, lost: () => void): () => void;
}

const program = "wireguard-go";

/** Folder of the sockets, which is fixed in wireguard-go and wg(8). */
const sockets = "/var/run/wireguard";
/** Returns the path of a device's socket. */
export const socketOf = (device: string): string => `${sockets}/${device}.sock`;

/** Creates the driver for wireguard-go. Each namespace gets a folder in `runFolder` for the output of the process. */
export function createUserspace(exec: Exec, runFolder: string): Holder {
  const folderOf = (namespace: string): string => join(runFolder, namespace, "wireguard");
  const outputOf = (namespace: string): string => join(folderOf(namespace), "wireguard.out");
  const confine = createConfine(exec, program);
  const set = async ({ device }: DevicePlace, request: string): Promise<void> => {
    if (request !== "") await requestDevice(socketOf(device), request);
  };
  return {
    name: program,
    async read({ namespace, device }, limit) {
      // It prints a line for each packet that it cannot send, into memory.
      trimLog(outputOf(namespace));
      return parseDevice(await requestDevice(socketOf(device), "get=1\n\n", limit));
    },
    async start({ namespace, device }) {
      await stopDaemons(exec, namespace, program, device, "SIGKILL");
      const folder = folderOf(namespace);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const output = outputOf(namespace);
      await Promise.all([rm(output, { force: true }), rm(socketOf(device), { force: true })]);
      await mkdir(sockets, { recursive: true, mode: 0o700 });
      const command = await confine(["-f", device], sockets);
      const child = await exec.startDetached(["ip", "netns", "exec", namespace, ...command], {
        environment: { WG_PROCESS_FOREGROUND: "1", LOG_LEVEL: "error" },
        output,
      });
      const find = () => requestDevice(socketOf(device), "get=1\n\n").catch(() => null);
      if ((await waitForStart(exec, child, find)) !== null) return;
      const printed = endOfLog(output, 1000);
      exec.signal(child, "SIGKILL");
      throw new Error(`${program} in ${namespace} did not start: ${printed || "no output"}`);
    },
    set: (place, desired, present) => set(place, renderDevice(desired, present)),
    forget: (place, peers) =>
      set(place, renderDevice({ ...blank, peers: [] }, { ...blank, peers: peers.map(peerToRemove) })),
    async stop({ namespace, device }) {
      await stopDaemons(exec, namespace, program, device, "SIGTERM");
      await rm(socketOf(device), { force: true });
      await rm(folderOf(namespace), { recursive: true, force: true });
      // The folder is shared with other engines of the namespace; the last one removes it.
      await rmdir(join(runFolder, namespace)).catch(() => {});
    },
    watch: ({ device }, lost) => watchDevice(socketOf(device), lost),
  };
}

const wgRights = keepRights(["net_admin"]);
const blank = { privateKey: "", listenPort: 0 };
const peerToRemove = (publicKey: string) => ({
  publicKey,
  presharedKey: null,
  endpoint: null,
  keepAlive: 0,
  allowed: [],
});

/** Creates the driver for the kernel. `wg` also configures a wireguard-go that was started before the kernel supported WireGuard. */
export function createKernel(exec: Exec, runFolder: string): Holder {
  const before = createUserspace(exec, runFolder);
  const folderOf = ({ namespace }: Pick<DevicePlace, "namespace">): string => join(runFolder, namespace, "wireguard");
  const wg = ({ namespace }: DevicePlace, args: readonly string[], options: { timeout?: number } = {}) =>
    // It reads a file of the host.
    exec.run(["ip", "netns", "exec", namespace, ...wgRights, "wg", ...args], { ...options, rights: "all" });
  const forget = async (place: DevicePlace, peers: readonly string[]): Promise<void> => {
    const args = peers.flatMap((peer) => ["peer", peer, "remove"]);
    if (args.length > 0) await wg(place, ["set", place.device, ...args]);
  };
  return {
    name: "WireGuard of the kernel",
    read: async (place, timeout = 2000) => parseDump(await wg(place, ["show", place.device, "dump"], { timeout })),
    async start({ namespace, device }) {
      await exec.run(["ip", "-n", namespace, "link", "add", device, "type", "wireguard"]);
      // The folder shows the next service that there is a device to remove.
      await mkdir(folderOf({ namespace }), { recursive: true, mode: 0o700 });
    },
    forget,
    async set(place, desired, present) {
      if (renderDevice(desired, present) === "") return;
      // A session would continue for three minutes with the old preshared key.
      const changed = present.peers.filter(({ publicKey, presharedKey }) =>
        desired.peers.some((peer) => peer.publicKey === publicKey && peer.presharedKey !== presharedKey),
      );
      await forget(
        place,
        changed.map(({ publicKey }) => publicKey),
      );
      // Keys must not be in arguments. `wg` opens the file by name, and standard input is a socket, which has none; /run is in memory.
      const file = join(folderOf(place), "device.conf");
      try {
        await mkdir(folderOf(place), { recursive: true, mode: 0o700 });
        await writeFile(file, renderConfig(desired), { mode: 0o600 });
        // It leaves unchanged peers alone, so their sessions continue.
        await wg(place, ["syncconf", place.device, file]);
      } finally {
        await rm(file, { force: true });
      }
    },
    async stop(place) {
      await before.stop(place);
      // Without the namespace there is no device either.
      await exec.run(["ip", "-n", place.namespace, "link", "del", place.device]).catch(() => "");
    },
    watch: () => () => {},
  };
}

/** Who processes the packets: the kernel's module, or `wireguard-go`. */
export type DeviceKind = "kernel" | "userspace";

/** Chooses the kind of devices on this host; null: neither is available. */
export function chooseHolder(has: {
  readonly kernel: boolean;
  /** Programs that are installed. */
  readonly wg: boolean;
  readonly wireguardGo: boolean;
}): DeviceKind | null {
  if (has.kernel && has.wg) return "kernel";
  return has.wireguardGo ? "userspace" : null;
}
