/**
 * Filters the system calls of this process and all its threads (seccomp(2)): it can no longer start programs, mount, trace, load code into
 * the kernel, create namespaces, or open sockets of other families than IP and Unix. libc is called through koffi. The process needs
 * `no_new_privs` or root. The filter cannot be removed. A refused call returns EPERM; `clone3` returns ENOSYS, so that libc uses `clone`,
 * whose flags can be checked.
 */
import { architectures, buildFilter, filterRules } from "../base/systemcalls.ts";

const PR_SET_NO_NEW_PRIVS = 38;
const SECCOMP_SET_MODE_FILTER = 1;
const SECCOMP_FILTER_FLAG_TSYNC = 1;

/** Installs the filter. Rejects where the processor's calls are not known, where koffi is missing, and when the kernel refuses it. */
export async function filterSystemCalls(): Promise<void> {
  const architecture = architectures[process.arch];
  if (process.platform !== "linux" || architecture === undefined)
    throw new Error(`the system calls of ${process.platform} ${process.arch} are not known`);
  const { default: koffi } = await import("koffi");
  const libc = koffi.load(null);
  const prctl: (option: number, a: number, b: number, c: number, d: number) => number = libc.func(
    "int prctl(int, ulong, ulong, ulong, ulong)",
  );
  const syscall: (call: number, operation: number, flags: number, program: Uint8Array) => number = libc.func(
    "long syscall(long, ulong, ulong, void *)",
  );
  const filter = buildFilter(architecture, filterRules.control);
  // struct sock_fprog: length in instructions, then the address of the instructions.
  const program = Buffer.alloc(16);
  program.writeUInt16LE(filter.length / 8, 0);
  program.writeBigUInt64LE(koffi.address(filter), 8);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) !== 0) throw new Error(`prctl: errno ${koffi.errno()}`);
  const result = syscall(architecture.seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
  if (result !== 0)
    throw new Error(result > 0 ? `thread ${result} has another filter` : `seccomp: errno ${koffi.errno()}`);
}
