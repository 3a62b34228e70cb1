/**
 * Finds out whether tests with real packets can run on this host. It tries, because root is not enough: in a container it may be
 * forbidden to create namespaces, and in a chroot to enter them.
 */
import { spawnSync } from "node:child_process";

const run = (...argv: readonly [string, ...string[]]) => {
  const { status, stderr, error } = spawnSync(argv[0], argv.slice(1), { encoding: "utf8" });
  return status === 0 ? null : (error?.message ?? stderr.trim().split("\n")[0] ?? "");
};

function tryNamespace(): string | false {
  const space = `brume-try-${process.pid}`;
  try {
    const failure =
      run("ip", "netns", "add", space) ??
      run("ip", "netns", "exec", space, "true") ??
      // User-space tunnels and servers need it.
      run("ip", "-n", space, "tuntap", "add", "dev", "t0", "mode", "tun");
    return failure !== null && `no namespaces with devices can be made: ${failure}`;
  } finally {
    run("ip", "netns", "del", space);
  }
}

let namespaces: string | false | undefined;

/** Returns the reason for `skip`, or false if the tests can run. */
export function whyNot(...commands: readonly string[]): string | false {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "needs root on Linux";
  const missing = commands.filter((command) => run("sh", "-c", 'command -v "$0"', command) !== null);
  if (missing.length > 0) return `needs ${missing.join(", ")}`;
  return (namespaces ??= tryNamespace());
}
