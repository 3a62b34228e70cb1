/**
 * System-call filters of processes as classic BPF programs (seccomp(2), struct seccomp_data): the calls of x86-64 and arm64 that they
 * refuse. They name what is refused instead of what is allowed, since the calls of a program change with its releases.
 */

/** Refused calls: their numbers on x86-64 (asm/unistd_64.h) and on arm64 (asm-generic/unistd.h); null: it has no such call. */
const refused = {
  // programs, and other processes
  execve: [59, 221],
  execveat: [322, 281],
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  // the file system as a whole
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  swapon: [167, 224],
  swapoff: [168, 225],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  fanotify_init: [300, 262],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  mknod: [133, null],
  mknodat: [259, 33],
  // namespaces and rights
  unshare: [272, 97],
  setns: [308, 268],
  setuid: [105, 146],
  setgid: [106, 144],
  setreuid: [113, 145],
  setregid: [114, 143],
  setgroups: [116, 159],
  setresuid: [117, 147],
  setresgid: [119, 149],
  setfsuid: [122, 151],
  setfsgid: [123, 152],
  capset: [126, 91],
  personality: [135, 92],
  // the kernel and the host
  init_module: [175, 105],
  delete_module: [176, 106],
  finit_module: [313, 273],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, null],
  ioperm: [173, null],
  acct: [163, 89],
  syslog: [103, 116],
  settimeofday: [164, 170],
  adjtimex: [159, 171],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  lookup_dcookie: [212, 18],
  vhangup: [153, 58],
  modify_ldt: [154, null],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Not io_uring_enter: Node ends without it where it has a ring already. The supervisor starts Node without one.
  io_uring_setup: [425, 425],
  io_uring_register: [427, 427],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
} as const;

/** A processor architecture whose calls are known. */
export interface Architecture {
  /** Its number in struct seccomp_data (AUDIT_ARCH of linux/audit.h). */
  readonly audit: number;
  /** Calls that the filter refuses, by name. */
  readonly refused: Readonly<Record<string, number>>;
  readonly clone: number;
  readonly clone3: number;
  readonly socket: number;
  readonly ioctl: number;
  /** The call that installs the filter. */
  readonly seccomp: number;
}

const numbersAt = (column: 0 | 1): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(refused).flatMap(([name, numbers]) => {
      const number = numbers[column];
      return number === null ? [] : [[name, number]];
    }),
  );

/** Architectures by their name in Node (`process.arch`). */
export const architectures: Readonly<Record<string, Architecture>> = {
  x64: { audit: 0xc000003e, refused: numbersAt(0), clone: 56, clone3: 435, socket: 41, ioctl: 16, seccomp: 317 },
  arm64: { audit: 0xc00000b7, refused: numbersAt(1), clone: 220, clone3: 435, socket: 198, ioctl: 29, seccomp: 277 },
};

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const newNamespaces = 0x7e020000;
/** CLONE_NEWNET. */
const newNetwork = 0x40000000;
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;
const SOCK_RAW = 3;
/** Bits of the type of a socket; the others are options. */
const typeMask = 0xf;

/** What a process may do beyond reading, writing and threads. */
export interface FilterRules {
  /** Calls of the list that it may use nevertheless. */
  readonly allowed: readonly string[];
  /** Families of sockets. */
  readonly families: readonly number[];
  /** Calls of the list that do nothing and report success. */
  readonly ignored?: readonly string[];
  /** `setns` may enter network namespaces, and no others. */
  readonly isEntering?: boolean;
  /** No raw packets of IP, and of netlink only links, addresses and routes: no firewall. */
  readonly isNarrow: boolean;
}

/** `control`: the control plane. `dhcp`: dnsmasq. `vpn`: daemons of tunnels. `disk`: programs that read disks. `network`: programs that configure networks. */
export const filterRules = {
  // Netlink for the addresses of the host.
  control: { allowed: [], families: [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK], isNarrow: false },
  // The program is started after its filter. Its root contains no other useful program.
  dhcp: { allowed: ["execve"], families: [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK], isNarrow: true },
  // charon drops capabilities that it does not have.
  vpn: { allowed: ["execve", "capset"], families: [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK], isNarrow: false },
  disk: { allowed: ["execve"], families: [AF_UNIX], isNarrow: false },
  network: {
    allowed: ["execve"],
    // `ip netns exec` mounts the /sys of the namespace, which no program here reads, in a mount namespace of its own.
    ignored: ["unshare", "mount", "umount2"],
    isEntering: true,
    families: [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK],
    isNarrow: false,
  },
} as const satisfies Record<string, FilterRules>;
/** TIOCSTI and TIOCLINUX write into the input of a terminal. */
const terminalInput = [0x5412, 0x541c];

const EPERM = 1;
const ENOSYS = 38;
const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const fail = (errno: number): number => 0x00050000 | errno;

/** Bit of calls with the x32 interface of x86-64, whose numbers would avoid the list. */
const x32 = 0x40000000;

/** Offsets in struct seccomp_data. */
const at = { call: 0, architecture: 4, first: 16, second: 24, third: 32 };

/** Instructions: load a word, jump if equal, if greater or equal, if any bit is set, keep these bits, return. */
const code = { load: 0x20, equal: 0x15, atLeast: 0x35, anyBit: 0x45, and: 0x54, end: 0x06 };

/** Returns the instructions: 8 bytes each, struct sock_filter. */
export function buildFilter(architecture: Architecture, rules: FilterRules): Buffer {
  const { allowed, families, isNarrow, ignored = [], isEntering = false } = rules;
  const { audit, refused, clone, clone3, socket, ioctl } = architecture;
  const program: [number, number, number, number][] = [];
  const add = (operation: number, value: number, yes = 0, no = 0) => program.push([operation, yes, no, value]);
  add(code.load, at.architecture);
  add(code.equal, audit, 1, 0);
  add(code.end, KILL);
  add(code.load, at.call);
  add(code.atLeast, x32, 0, 1);
  add(code.end, KILL);
  for (const [name, number] of Object.entries(refused)) {
    if (allowed.includes(name)) continue;
    if (isEntering && name === "setns") {
      add(code.equal, number, 0, 4);
      add(code.load, at.second);
      add(code.equal, newNetwork, 0, 1);
      add(code.end, ALLOW);
      add(code.end, fail(EPERM));
      continue;
    }
    add(code.equal, number, 0, 1);
    add(code.end, fail(ignored.includes(name) ? 0 : EPERM));
  }
  add(code.equal, clone3, 0, 1);
  add(code.end, fail(ENOSYS));
  add(code.equal, clone, 0, 4);
  add(code.load, at.first);
  add(code.anyBit, newNamespaces, 0, 1);
  add(code.end, fail(EPERM));
  add(code.end, ALLOW);
  // Each list ends with its two results, to which its comparisons jump.
  add(code.equal, socket, 0, families.length + 3 + (isNarrow ? 10 : 0));
  add(code.load, at.first);
  if (isNarrow) {
    add(code.equal, AF_NETLINK, 0, 4);
    add(code.load, at.third);
    add(code.equal, NETLINK_ROUTE, 1, 0);
    add(code.end, fail(EPERM));
    add(code.end, ALLOW);
    add(code.load, at.second);
    add(code.and, typeMask);
    add(code.equal, SOCK_RAW, 0, 1);
    add(code.end, fail(EPERM));
    add(code.load, at.first);
  }
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
