/** Pings that state which packets were lost. */
import { exec } from "../../service/src/drivers/exec.ts";

/**
 * Sends 50 echo requests a second from the namespace until `count` answers have come, and resolves to the sequence numbers
 * from 1 to `count` without an answer. With `-c` alone, ping waits for the last answers only for twice the longest round trip
 * so far, and on a busy host takes them for lost.
 */
export async function lostPings(space: string, to: string, count: number): Promise<readonly number[]> {
  const argv = ["ping", "-n", "-i", "0.02", "-c", String(count), "-w", "20", to];
  const output = await exec.run(["ip", "netns", "exec", space, ...argv], { timeout: 120_000 });
  const answered = new Set(Array.from(output.matchAll(/icmp_seq=(\d+) ttl/g), ([, seq]) => Number(seq)));
  return Array.from({ length: count }, (_, at) => at + 1).filter((seq) => !answered.has(seq));
}
