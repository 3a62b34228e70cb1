import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { readCloudConfig } from "./cloudconfig.ts";

const read = (yaml: string) => readCloudConfig(Buffer.from(`#cloud-config\n${yaml}`));
const script = (yaml: string): string => {
  const { script: found, refused } = read(yaml);
  assert.equal(refused, "");
  assert.ok(found !== null);
  const { status, stderr } = spawnSync("sh", ["-n"], { input: found });
  assert.equal(status, 0, String(stderr));
  return found;
};
const refused = (yaml: string): string => {
  const found = read(yaml);
  assert.equal(found.script, null);
  return found.refused;
};
/** Lines after the common prologue, with base64 decoded. */
const calls = (yaml: string): string[] =>
  script(yaml)
    .slice(script("").lastIndexOf("}\n") + 2)
    .replaceAll(/<<'END'\n([A-Za-z0-9+/=\n]*)\nEND/g, (_, packed: string) =>
      JSON.stringify(Buffer.from(packed, "base64").toString()),
    )
    .split("\n")
    .slice(0, -5);

test("users, keys, files, commands and the host name become calls", () => {
  assert.deepEqual(
    calls(`
hostname: web
fqdn: web.example.org
users:
  - default
  - bob
  - name: ann
    gecos: Ann O'Neill
    uid: 1500
    groups: staff, wheel
    shell: /bin/sh
    lock_passwd: false
    passwd: $6$salt$hash
    ssh_authorized_keys: [ssh-ed25519 AAAA ann@laptop]
ssh_authorized_keys:
  - ssh-ed25519 BBBB root
write_files:
  - {path: /etc/motd, content: "hello\\n", permissions: '0640', owner: ann:staff}
  - {path: "/a b'c", content: aGk=, encoding: b64, append: true, permissions: 0600}
runcmd:
  - cd /tmp && echo "$PWD"
  - [echo, "it's", 5]
`),
    [
      "set_host_name 'web' 'web.example.org web'",
      "add_user 'bob' '' '' '' ''",
      "add_user 'ann' '1500' 'Ann O'\\''Neill' '' '/bin/sh'",
      "join_group 'ann' 'staff'",
      "join_group 'ann' 'wheel'",
      "set_hash 'ann' '$6$salt$hash'",
      `add_keys 'ann' "ssh-ed25519 AAAA ann@laptop\\n"`,
      `add_keys 'root' "ssh-ed25519 BBBB root\\n"`,
      `write_file '/etc/motd' '0640' 'ann:staff' '' "hello\\n"`,
      `write_file '/a b'\\''c' '600' 'root:root' '1' "hi"`,
      `base64 -d >/run/seed/commands ${JSON.stringify(`cd /tmp && echo "$PWD"\n'echo' 'it'\\''s' '5'\n`)}`,
      "sh /run/seed/commands </dev/null",
      'echo "runcmd ended with $?"',
    ],
  );
  assert.deepEqual(calls(""), []);
  assert.deepEqual(calls("users: [{name: ann, hashed_passwd: $6$s$h}]")[1], "set_hash 'ann' '*'");
});

test("all unsupported keys are refused by name at once", () => {
  const cases: readonly (readonly [string, string | RegExp])[] = [
    ["packages: [vim]\ntimezone: UTC\nruncmd: [id]", "packages, timezone"],
    [
      "users: [{name: a, sudo: ALL}, {name: b, ssh_import_id: x}]",
      "users[0].sudo (must be false), users[1].ssh_import_id",
    ],
    ["users: [{gecos: x}]", "users[0] (must have a name)"],
    ["users: [{name: 'a;reboot'}]", /^users\[0\].name \(must be a name of at most/],
    ["users: [{name: a, shell: /bin/bash}]", "users[0].shell (must be /bin/sh or /bin/ash or /bin/false)"],
    ["users: [{name: a, gecos: 'x:0:0'}]", "users[0].gecos (must be text without colon)"],
    ['users: [{name: a, homedir: "/a\\n/b"}]', "users[0].homedir (must be a path that begins with /)"],
    ['users: [{name: a, hashed_passwd: "x\\ny"}]', "users[0].hashed_passwd (must be a hash as in /etc/shadow)"],
    ['ssh_authorized_keys: ["a\\nb"]', "ssh_authorized_keys[0] (must be one line of text)"],
    ["write_files: [{path: etc}]", "write_files[0].path (must be a path that begins with /)"],
    ["write_files: [{content: x}]", "write_files[0] (must have a path)"],
    ["write_files: [{path: /x, encoding: gzip}]", "write_files[0].encoding (must be text/plain or base64 or b64)"],
    ["write_files: [{path: /x, encoding: b64, content: '$(id)'}]", "write_files[0].content (must be base64)"],
    ["write_files: [{path: /x, permissions: u+s}]", "write_files[0].permissions (must be octal, as '0644')"],
    ["write_files: [{path: /x, owner: '-R x'}]", "write_files[0].owner (must be user or user:group)"],
    ["preserve_hostname: true", "preserve_hostname (must be false)"],
    ["hostname: 'a b'", "hostname (must be a host name)"],
    ["runcmd: [[id, {a: 1}]]", "runcmd[0][1] (must be text)"],
    ["bootcmd: [id]", "bootcmd"],
    ["__proto__: {a: 1}", "__proto__"],
    ["- a", " (must be a mapping)"],
  ];
  for (const [yaml, expected] of cases)
    if (typeof expected === "string") assert.equal(refused(yaml), expected, yaml);
    else assert.match(refused(yaml), expected, yaml);
});

test("hostile YAML is refused", () => {
  const bomb = [
    "a: &a [x,x,x,x,x,x,x,x,x]",
    ..."bcdefgh".split("").map((name, index) => `${name}: &${name} [${`*${"abcdefg"[index]},`.repeat(9)}]`),
  ];
  const cases = [
    bomb.join("\n"),
    "runcmd: !!python/object/apply:os.system [id]",
    "runcmd: !x [id]",
    "write_files: [{path: /x, content: !!binary aGk=}]",
    "runcmd: [*missing]",
    "runcmd: [",
    `runcmd: ${"[".repeat(100_000)}`,
    "a: b\n---\nc: d",
    `#${"x".repeat(200_000)}`,
  ];
  for (const yaml of cases) assert.match(refused(yaml), /YAML|more than/, yaml.slice(0, 80));
  assert.equal(refused("runcmd: &a [*a]"), "runcmd[0][0] (must be text)");
  assert.ok(refused(Array.from({ length: 1000 }, (_, index) => `k${index}: 1`).join("\n")).length < 600);
});
