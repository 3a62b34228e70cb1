/**
 * The system-call filter of the control plane as a classic BPF program (seccomp(2), struct seccomp_data): the calls of x86-64 that it
 * refuses. It names what is refused instead of what is allowed, since the calls of Node change with each release.
 */

/** Refused calls of x86-64 (asm/unistd_64.h). */
const refused = {
  // programs, and other processes
  execve: 59,
  execveat: 322,
  ptrace: 101,
  process_vm_readv: 310,
  process_vm_writev: 311,
  process_madvise: 440,
  kcmp: 312,
  pidfd_getfd: 438,
  // the file system as a whole
  mount: 165,
  umount2: 166,
  pivot_root: 155,
  chroot: 161,
  swapon: 167,
  swapoff: 168,
  quotactl: 179,
  quotactl_fd: 443,
  name_to_handle_at: 303,
  open_by_handle_at: 304,
  fanotify_init: 300,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  mount_setattr: 442,
  mknod: 133,
  mknodat: 259,
  // namespaces and rights
  unshare: 272,
  setns: 308,
  setuid: 105,
  setgid: 106,
  setreuid: 113,
  setregid: 114,
  setgroups: 116,
  setresuid: 117,
  setresgid: 119,
  setfsuid: 122,
  setfsgid: 123,
  capset: 126,
  personality: 135,
  // the kernel and the host
  init_module: 175,
  delete_module: 176,
  finit_module: 313,
  kexec_load: 246,
  kexec_file_load: 320,
  reboot: 169,
  sethostname: 170,
  setdomainname: 171,
  iopl: 172,
  ioperm: 173,
  acct: 163,
  syslog: 103,
  settimeofday: 164,
  adjtimex: 159,
  clock_settime: 227,
  clock_adjtime: 305,
  bpf: 321,
  perf_event_open: 298,
  userfaultfd: 323,
  lookup_dcookie: 212,
  vhangup: 153,
  modify_ldt: 154,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  // Not io_uring_enter: Node ends without it where it has a ring already. The supervisor starts Node without one.
  io_uring_setup: 425,
  io_uring_register: 427,
  move_pages: 279,
  migrate_pages: 256,
} as const;

const clone = 56;
const clone3 = 435;
const socket = 41;
const ioctl = 16;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const newNamespaces = 0x7e020000;
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (for the addresses of the host). */
const families = [1, 2, 10, 16];
/** TIOCSTI and TIOCLINUX write into the input of a terminal. */
const terminalInput = [0x5412, 0x541c];

const EPERM = 1;
const ENOSYS = 38;
const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const fail = (errno: number): number => 0x00050000 | errno;

const x86_64 = 0xc000003e;
/** Bit of calls with the x32 interface, whose numbers would avoid the list. */
const x32 = 0x40000000;

/** Offsets in struct seccomp_data. */
const at = { call: 0, architecture: 4, first: 16, second: 24 };

/** Instructions: load a word, jump if equal, if greater or equal, if any bit is set, return. */
const code = { load: 0x20, equal: 0x15, atLeast: 0x35, anyBit: 0x45, end: 0x06 };

/** Calls that the filter refuses, by name. */
export const refusedCalls: Readonly<Record<string, number>> = refused;

/** Returns the instructions: 8 bytes each, struct sock_filter. */
export function buildFilter(calls: Readonly<Record<string, number>>): Buffer {
  const program: [number, number, number, number][] = [];
  const add = (operation: number, value: number, yes = 0, no = 0) => program.push([operation, yes, no, value]);
  add(code.load, at.architecture);
  add(code.equal, x86_64, 1, 0);
  add(code.end, KILL);
  add(code.load, at.call);
  add(code.atLeast, x32, 0, 1);
  add(code.end, KILL);
  for (const number of Object.values(calls)) {
    add(code.equal, number, 0, 1);
    add(code.end, fail(EPERM));
  }
  add(code.equal, clone3, 0, 1);
  add(code.end, fail(ENOSYS));
  add(code.equal, clone, 0, 4);
  add(code.load, at.first);
  add(code.anyBit, newNamespaces, 0, 1);
  add(code.end, fail(EPERM));
  add(code.end, ALLOW);
  // Each list ends with its two results, to which its comparisons jump.
  add(code.equal, socket, 0, families.length + 3);
  add(code.load, at.first);
  families.forEach((family, index) => add(code.equal, family, families.length - index, 0));
  add(code.end, fail(EPERM));
  add(code.end, ALLOW);
  add(code.equal, ioctl, 0, terminalInput.length + 3);
  add(code.load, at.second);
  terminalInput.forEach((request, index) => add(code.equal, request, terminalInput.length - index, 0));
  add(code.end, ALLOW);
  add(code.end, fail(EPERM));
  add(code.end, ALLOW);
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([operation, yes, no, value], index) => {
    bytes.writeUInt16LE(operation, index * 8);
    bytes.writeUInt8(yes, index * 8 + 2);
    bytes.writeUInt8(no, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  });
  return bytes;
}
