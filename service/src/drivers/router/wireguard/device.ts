/**
 * The device of a network's WireGuard, by whoever holds it: the kernel where it has WireGuard, told by wg(8), else a wireguard-go in
 * the network's namespace, told over its socket. Both are told and read alike; what a device of the kernel cannot do is die.
 */
import { mkdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exec } from "../../exec.ts";
import { stopDaemons } from "../linux/daemon.ts";
import { parseDump, renderConfig } from "./config.ts";
import { type PeerState, parseDevice, renderDevice, requestDevice, type WireguardDevice, watchDevice } from "./uapi.ts";

/** Where the device is. */
export interface Place {
  readonly namespace: string;
  /** Unique on the machine, at most 15 characters: the folder of the sockets is everybody's. */
  readonly device: string;
}

export interface Holder {
  /** For the log. */
  readonly name: string;
  /** Rejects when there is no device, or it says nothing within `limit` milliseconds. */
  read(place: Place, limit?: number): Promise<WireguardDevice<PeerState>>;
  start(place: Place): Promise<void>;
  /** Makes `present` into `wished`. */
  set(place: Place, desired: WireguardDevice, present: WireguardDevice): Promise<void>;
  /** Ends the sessions of these peers, by public key. */
  forget(place: Place, peers: readonly string[]): Promise<void>;
  /** Nothing is left. An unknown one is fine. */
  stop(place: Place): Promise<void>;
  /** Calls `lost` once when the device is gone. Returns how to stop watching. */
  watch(place: Place, lost: () => void): () => void;
}

const program = "wireguard-go";
const startLimit = 5000;

export const socketOf = (device: string): string => `/var/run/wireguard/${device}.sock`;

/** Each namespace gets a folder in `runFolder`, for what the program says when it fails. */
export function createUserspace(exec: Exec, runFolder: string): Holder {
  const folderOf = (namespace: string): string => join(runFolder, namespace, "wireguard");
  const set = async ({ device }: Place, request: string): Promise<void> => {
    if (request !== "") await requestDevice(socketOf(device), request);
  };
  return {
    name: program,
    read: async ({ device }, limit) => parseDevice(await requestDevice(socketOf(device), "get=1\n\n", limit)),
    async start({ namespace, device }) {
      await stopDaemons(exec, namespace, program, device, "SIGKILL");
      const folder = folderOf(namespace);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const output = join(folder, "wireguard.out");
      await Promise.all([rm(output, { force: true }), rm(socketOf(device), { force: true })]);
      const child = await exec.startDetached(["ip", "netns", "exec", namespace, program, "-f", device], {
        environment: { WG_PROCESS_FOREGROUND: "1", LOG_LEVEL: "error" },
        output,
      });
      for (let waited = 0; waited < startLimit && exec.isAlive(child); waited += 20) {
        if (await requestDevice(socketOf(device), "get=1\n\n").catch(() => null)) return;
        await sleep(20);
      }
      const said = (await readFile(output, "utf8").catch(() => "")).trim().slice(-1000);
      exec.signal(child, "SIGKILL");
      throw new Error(`${program} in ${namespace} does not start: ${said || "it is silent"}`);
    },
    set: (place, desired, present) => set(place, renderDevice(desired, present)),
    forget: (place, peers) =>
      set(place, renderDevice({ ...blank, peers: [] }, { ...blank, peers: peers.map(peerToRemove) })),
    async stop({ namespace, device }) {
      await stopDaemons(exec, namespace, program, device, "SIGTERM");
      await rm(socketOf(device), { force: true });
      await rm(folderOf(namespace), { recursive: true, force: true });
      // Shared with other engines of the namespace; the last one takes it away.
      await rmdir(join(runFolder, namespace)).catch(() => {});
    },
    watch: ({ device }, lost) => watchDevice(socketOf(device), lost),
  };
}

const blank = { privateKey: "", listenPort: 0 };
const peerToRemove = (publicKey: string) => ({
  publicKey,
  presharedKey: null,
  endpoint: null,
  keepAlive: 0,
  allowed: [],
});

/** `wg` speaks with the kernel, and with a wireguard-go that was started before the kernel had WireGuard. */
export function createKernel(exec: Exec, runFolder: string): Holder {
  const before = createUserspace(exec, runFolder);
  const folderOf = ({ namespace }: Pick<Place, "namespace">): string => join(runFolder, namespace, "wireguard");
  const wg = ({ namespace }: Place, args: readonly string[], options: { timeout?: number } = {}) =>
    exec.run(["ip", "netns", "exec", namespace, "wg", ...args], options);
  const forget = async (place: Place, peers: readonly string[]): Promise<void> => {
    const words = peers.flatMap((peer) => ["peer", peer, "remove"]);
    if (words.length > 0) await wg(place, ["set", place.device, ...words]);
  };
  return {
    name: "WireGuard of the kernel",
    read: async (place, timeout = 2000) => parseDump(await wg(place, ["show", place.device, "dump"], { timeout })),
    async start({ namespace, device }) {
      await exec.run(["ip", "-n", namespace, "link", "add", device, "type", "wireguard"]);
      // It tells the next service that there is something to remove.
      await mkdir(folderOf({ namespace }), { recursive: true, mode: 0o700 });
    },
    forget,
    async set(place, desired, present) {
      if (renderDevice(desired, present) === "") return;
      // A session would outlive its preshared key for three minutes.
      const changed = present.peers.filter(({ publicKey, presharedKey }) =>
        desired.peers.some((peer) => peer.publicKey === publicKey && peer.presharedKey !== presharedKey),
      );
      await forget(
        place,
        changed.map(({ publicKey }) => publicKey),
      );
      // Keys are in no argument. It opens the file by name, and our standard input is a socket, which has none; /run is in memory.
      const file = join(folderOf(place), "device.conf");
      try {
        await mkdir(folderOf(place), { recursive: true, mode: 0o700 });
        await writeFile(file, renderConfig(desired), { mode: 0o600 });
        // Where nothing differs it leaves a peer as it is, so sessions go on.
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

export type Kind = "kernel" | "userspace";

/** Who holds the devices of this machine; null: nobody can. */
export function chooseHolder(has: {
  readonly kernel: boolean;
  /** Programs that are installed. */
  readonly wg: boolean;
  readonly wireguardGo: boolean;
}): Kind | null {
  if (has.kernel && has.wg) return "kernel";
  return has.wireguardGo ? "userspace" : null;
}
