/**
 * TAP devices, the host's ends of NICs. A TAP device is created anew at each start, since the old one is in the namespace of a network,
 * where a new process cannot open it. It gets its final name only after the process has opened it: the router moves a device of that name
 * at once.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Exec } from "../../exec.ts";
import { keepRights } from "../../privateroot.ts";
import type { Nic } from "../interface.ts";
import { deviceOf, guestOf, pendingTapOf, serverOf } from "./name.ts";

const ipRights = keepRights(["net_admin"]);

/** Creates, renames and removes TAP devices. */
export interface Taps {
  /** Creates a TAP device with a pending name for each NIC, and removes one with the final name. */
  create(server: number, nics: readonly Nic[], uid: number): Promise<void>;
  /** Gives the devices their final names, after the process has opened them. Does nothing for devices that have it. */
  rename(nics: readonly Nic[]): Promise<void>;
  /** Removes the server's devices in the host's network namespace: all, or those of these names. */
  remove(server: number, devices?: readonly string[]): Promise<void>;
  /** Returns the servers that have devices in the host's network namespace. */
  owners(): ReadonlySet<number>;
}

export function createTaps(exec: Exec, tag: string): Taps {
  /** Returns the server in the alias of the device; null if the device does not exist or belongs to no server. */
  function ownerOf(device: string): number | null {
    try {
      return serverOf(tag, readFileSync(`/sys/class/net/${device}/ifalias`, "utf8").trim());
    } catch {
      return null;
    }
  }
  const listDevices = (): readonly string[] => readdirSync("/sys/class/net");
  const ip = async (lines: readonly string[]): Promise<void> => {
    const stdin = lines.map((line) => `${line}\n`).join("");
    if (lines.length > 0) await exec.run([...ipRights, "ip", "-batch", "-"], { stdin });
  };
  return {
    async create(server, nics, uid) {
      const lines = nics.flatMap(({ id }) => {
        const [device, pending] = [deviceOf(tag, id), pendingTapOf(tag, id)];
        return [
          ...(ownerOf(device) === server ? [`link del ${device}`] : []),
          // Its name belongs to this installation, even if the service was killed before it set the alias.
          ...(existsSync(`/sys/class/net/${pending}`) ? [`link del ${pending}`] : []),
          `tuntap add dev ${pending} mode tap user ${uid}`,
          `link set dev ${pending} alias ${guestOf(tag, server)}`,
        ];
      });
      await ip(lines);
    },
    async rename(nics) {
      const notRenamed = nics.filter(({ id }) => existsSync(`/sys/class/net/${pendingTapOf(tag, id)}`));
      await ip(notRenamed.map(({ id }) => `link set dev ${pendingTapOf(tag, id)} name ${deviceOf(tag, id)}`));
    },
    async remove(server, devices) {
      const taps = (devices ?? listDevices()).filter((name) => ownerOf(name) === server);
      await ip(taps.map((name) => `link del ${name}`));
    },
    owners: () => new Set(listDevices().flatMap((name) => ownerOf(name) ?? [])),
  };
}
