/**
 * Removes what a test created on the host after its process has ended, also if it was killed by a timeout or Ctrl-C. A shell waits on a
 * pipe whose other end only the process of the test has. Usually the test has removed everything itself.
 */
import { spawn } from "node:child_process";

const script = `
read -r pattern && read -r tag && read -r folder && [ -n "$tag" ] || exit
cat >/dev/null
spaces=$(ip netns list | cut -d' ' -f1 | grep -Ex "$pattern") || :
pids=$(
  for space in $spaces; do ip netns pids "$space"; done
  grep -lsE "(^|[^0-9a-z])guest=brume-$tag-[0-9]" /proc/[0-9]*/cmdline | cut -d/ -f3
)
if [ -n "$pids" ]; then
  kill $pids # with time to remove their sockets
  sleep 0.5
  kill -KILL $pids
fi
for space in $spaces; do ip netns del "$space"; done
for device in /sys/class/net/b"$tag"[tx][0-9a-z]*; do [ -e "$device" ] && ip link del "\${device##*/}"; done
for group in /sys/fs/cgroup/brume-"$tag" /sys/fs/cgroup/*/brume-"$tag"; do rmdir "$group"/* "$group"; done
rm -rf "$folder" /run/wireguard/b"$tag"*.sock
`;

export interface Traces {
  /** Extended regular expression that matches complete names of namespaces. */
  readonly spaces: string;
  /** Tag of the simulated installation, part of the names of its devices, servers and cgroups. */
  readonly tag: string;
  readonly folder: string;
}

export function guard({ spaces, tag, folder }: Traces): void {
  const child = spawn("sh", ["-c", script, "guard"], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  child.unref();
  // Not as arguments: a search for leftover processes by these names would find the guard.
  child.stdin.write(`${spaces}\n${tag}\n${folder}\n`);
  const pipe: unknown = child.stdin;
  (pipe as { unref(): void }).unref();
}
