/**
 * The machine's ends of cards. A tap is made anew at each start, since the last one is in a network's namespace, where no new process
 * can open it; and it gets the name by which the router knows it only when the process holds it, or the router would be quicker.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Exec } from "../../exec.ts";
import type { Nic } from "../interface.ts";
import { deviceOf, guestOf, serverOf, unheldOf } from "./name.ts";

export interface Taps {
  /** There is a tap that waits for the server's process; none of the card's own name is left. */
  make(server: number, nics: readonly Nic[], uid: number): Promise<void>;
  /** The process has them: from now on they have their own names. Free where that is so. */
  name(nics: readonly Nic[]): Promise<void>;
  /** All of the server that are still in the machine's own namespace, or those of these names. */
  remove(server: number, devices?: readonly string[]): Promise<void>;
  /** Servers that have taps in the machine's own namespace. */
  owners(): ReadonlySet<number>;
}

export function createTaps(exec: Exec, tag: string): Taps {
  /** By device the server that it says it belongs to. */
  function list(): ReadonlyMap<string, number> {
    const found = new Map<string, number>();
    for (const device of readdirSync("/sys/class/net")) {
      try {
        const server = serverOf(tag, readFileSync(`/sys/class/net/${device}/ifalias`, "utf8").trim());
        if (server !== null) found.set(device, server);
      } catch {
        // It is gone.
      }
    }
    return found;
  }
  const ip = async (lines: readonly string[]): Promise<void> => {
    if (lines.length > 0) await exec.run(["ip", "-batch", "-"], { stdin: lines.map((line) => `${line}\n`).join("") });
  };
  return {
    async make(server, nics, uid) {
      const there = list();
      const lines = nics.flatMap(({ id }) => {
        const [device, unheld] = [deviceOf(tag, id), unheldOf(tag, id)];
        return [
          ...(there.get(device) === server ? [`link del ${device}`] : []),
          // Its name is ours alone, even if somebody was killed before he said whose it is.
          ...(existsSync(`/sys/class/net/${unheld}`) ? [`link del ${unheld}`] : []),
          `tuntap add dev ${unheld} mode tap user ${uid}`,
          `link set dev ${unheld} alias ${guestOf(tag, server)}`,
        ];
      });
      await ip(lines);
    },
    async name(nics) {
      const unnamed = nics.filter(({ id }) => existsSync(`/sys/class/net/${unheldOf(tag, id)}`));
      await ip(unnamed.map(({ id }) => `link set dev ${unheldOf(tag, id)} name ${deviceOf(tag, id)}`));
    },
    async remove(server, devices) {
      const ours = [...list()].filter(([name, owner]) => owner === server && (devices?.includes(name) ?? true));
      await ip(ours.map(([name]) => `link del ${name}`));
    },
    owners: () => new Set(list().values()),
  };
}
