/** The system-call filter, run by an interpreter of its instructions. The kernel runs it in test/host/processes.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Architecture, architectures, buildFilter, filterRules } from "./systemcalls.ts";

const allow = 0x7fff0000;
const eperm = 0x00050001;

interface Call {
  readonly call: number;
  readonly architecture: number;
  readonly arguments?: readonly number[];
}

/** Runs the program as the kernel does. Throws for an instruction that it does not know, and for a jump beyond the end. */
function decide(program: Buffer, { call, architecture, arguments: values = [] }: Call): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call >>> 0, 0);
  data.writeUInt32LE(architecture >>> 0, 4);
  values.forEach((value, index) => data.writeUInt32LE(value >>> 0, 16 + index * 8));
  let accumulator = 0;
  for (let at = 0; ; at++) {
    const operation = program.readUInt16LE(at * 8);
    const [yes, no] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)];
    const value = program.readUInt32LE(at * 8 + 4);
    if (operation === 0x06) return value;
    if (operation === 0x20) accumulator = data.readUInt32LE(value);
    else if (operation === 0x15) at += accumulator === value ? yes : no;
    else if (operation === 0x35) at += accumulator >= value ? yes : no;
    else if (operation === 0x54) accumulator &= value;
    else if (operation === 0x45) at += (accumulator & value) === 0 ? no : yes;
    else throw new Error(`instruction ${operation}`);
  }
}

for (const [name, known] of Object.entries(architectures)) {
  const { audit: architecture, refused, clone, clone3, socket, ioctl } = known;
  const program = buildFilter(known, filterRules.control);

  test(`${name}: every listed call is refused, and every other one is allowed`, () => {
    const numbers = new Set<number>(Object.values(refused));
    assert.equal(numbers.size, Object.keys(refused).length);
    for (let call = 0; call < 500; call++)
      if (call !== clone3) {
        const decided = decide(program, { call, architecture, arguments: [2, 0] });
        assert.equal(decided, numbers.has(call) ? eperm : allow, `${call}`);
      }
  });

  test(`${name}: clone makes threads and no namespaces; libc uses it instead of clone3`, () => {
    assert.equal(decide(program, { call: clone3, architecture }), 0x00050026);
    assert.equal(decide(program, { call: clone, architecture, arguments: [0x003d0f00] }), allow);
    for (const flag of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]) {
      const decided = decide(program, { call: clone, architecture, arguments: [0x003d0f00 | flag] });
      assert.equal(decided, eperm, flag.toString(16));
    }
  });

  test(`${name}: sockets are of IP, Unix, and netlink for the addresses of the host`, () => {
    const allowed = Array.from({ length: 46 }, (_, family) => family).filter(
      (family) => decide(program, { call: socket, architecture, arguments: [family, 2] }) === allow,
    );
    assert.deepEqual(allowed, [1, 2, 10, 16]);
  });

  test(`${name}: no input is written into a terminal`, () => {
    for (const request of [0x5412, 0x541c])
      assert.equal(decide(program, { call: ioctl, architecture, arguments: [0, request] }), eperm);
    assert.equal(decide(program, { call: ioctl, architecture, arguments: [0, 0x5401] }), allow);
  });

  test(`${name}: calls of other architectures end the process`, () => {
    const others = Object.values(architectures).filter((one: Architecture) => one !== known);
    // 32-bit x86 and 32-bit arm.
    for (const other of [0x40000003, 0x40000028, ...others.map(({ audit }) => audit)])
      assert.equal(decide(program, { call: 59, architecture: other }), 0x80000000);
    assert.equal(decide(program, { call: 0x40000000 + 59, architecture }), 0x80000000);
  });
}

test("a program that is started with its filter may be started, and its sockets are of few families", () => {
  const { x64 } = architectures;
  assert.ok(x64);
  const { audit: architecture, refused, socket } = x64;
  const program = (rules: keyof typeof filterRules) => buildFilter(x64, filterRules[rules]);
  for (const [rules, allowed] of [
    ["dhcp", [1, 2, 10, 16]],
    ["vpn", [1, 2, 10, 16]],
    ["disk", [1]],
  ] as const) {
    const decideFor = (call: number, ...values: readonly number[]) =>
      decide(program(rules), { call, architecture, arguments: values });
    const families = Array.from({ length: 46 }, (_, family) => family);
    assert.deepEqual(
      families.filter((family) => decideFor(socket, family, 2, 0) === allow),
      allowed,
    );
    assert.equal(decideFor(refused["execve"] ?? 0), allow);
    for (const name of ["ptrace", "mount", "unshare", "setns", "setuid", "bpf"])
      assert.equal(decideFor(refused[name] ?? 0), eperm, name);
    assert.equal(decideFor(0), allow);
  }
  // NETLINK_ROUTE is 0, NETLINK_NETFILTER 12.
  const netlink = (rules: keyof typeof filterRules, protocol: number) =>
    decide(program(rules), { call: socket, architecture, arguments: [16, 3, protocol] });
  assert.deepEqual([netlink("dhcp", 0), netlink("dhcp", 12)], [allow, eperm]);
  assert.equal(netlink("vpn", 12), allow);
  // SOCK_RAW with SOCK_CLOEXEC.
  const raw = (rules: keyof typeof filterRules, family: number) =>
    decide(program(rules), { call: socket, architecture, arguments: [family, 0x80003, 1] });
  for (const family of [2, 10]) assert.deepEqual([raw("dhcp", family), raw("vpn", family)], [eperm, allow]);
});

test("what configures networks enters their namespaces and no others, and mounts nothing although it tries", () => {
  const { x64 } = architectures;
  assert.ok(x64);
  const { audit: architecture, refused } = x64;
  const program = buildFilter(x64, filterRules.network);
  const decideFor = (name: string, ...values: readonly number[]) =>
    decide(program, { call: refused[name] ?? 0, architecture, arguments: values });
  // CLONE_NEWNET; any kind, CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, two kinds.
  assert.equal(decideFor("setns", 3, 0x40000000), allow);
  for (const kind of [0, 0x00020000, 0x10000000, 0x20000000, 0x40020000])
    assert.equal(decideFor("setns", 3, kind), eperm, kind.toString(16));
  for (const name of ["unshare", "mount", "umount2"]) assert.equal(decideFor(name, 0x00020000), 0x00050000, name);
  for (const name of ["pivot_root", "fsmount", "move_mount", "ptrace", "bpf", "setuid", "mknodat", "init_module"])
    assert.equal(decideFor(name), eperm, name);
  assert.equal(decideFor("execve"), allow);
});

test("programs, namespaces and other users are refused by the numbers of each architecture", () => {
  const names = ["execve", "ptrace", "mount", "unshare", "setuid", "bpf", "io_uring_setup"];
  const numbers = (name: string) => names.map((call) => architectures[name]?.refused[call]);
  assert.deepEqual(numbers("x64"), [59, 101, 165, 272, 105, 321, 425]);
  assert.deepEqual(numbers("arm64"), [221, 117, 40, 97, 146, 280, 425]);
});
