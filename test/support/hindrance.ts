/**
 * Why tests with real packets cannot run here, if they cannot. It is tried, since being root says little: in a container root may
 * have no right to make namespaces, and a chroot none to enter them.
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
      // User-space tunnels and servers stand on it.
      run("ip", "-n", space, "tuntap", "add", "dev", "t0", "mode", "tun");
    return failure !== null && `no namespaces with devices can be made: ${failure}`;
  } finally {
    run("ip", "netns", "del", space);
  }
}

let namespaces: string | false | undefined;

/** The reason in words, for `skip`; false when there is none. */
export function whyNot(...commands: readonly string[]): string | false {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "needs root on Linux";
  const missing = commands.filter((command) => run("sh", "-c", 'command -v "$0"', command) !== null);
  if (missing.length > 0) return `needs ${missing.join(", ")}`;
  return (namespaces ??= tryNamespace());
}
