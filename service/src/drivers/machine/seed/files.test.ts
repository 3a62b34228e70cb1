import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { anyText } from "../../../../../test/support/texts.ts";
import { quoteShell } from "../../../base/quote.ts";
import { type Guest, readyMark, renderSeed } from "./files.ts";
import { writeSeed } from "./volume.ts";

const nic = {
  mac: "02:42:00:00:00:1f",
  addresses: ["10.63.0.2/16", "fd24::2/64"],
  gateway4: "10.63.0.1",
  gateway6: null,
  mtu: 1450,
  dhcp: false,
};
const guest = (spec: Partial<Guest> = {}): Guest => ({
  instanceId: "i-17-1",
  hostName: "web-1",
  adminUser: "root",
  passwordHash: "$6$salt$hash",
  sshKeys: ["ssh-ed25519 AAAA ann@laptop"],
  nameServers: ["9.9.9.9", "2620:fe::fe"],
  nics: [nic],
  userData: null,
  ...spec,
});
const files = (spec: Partial<Guest> = {}): Map<string, string> =>
  new Map(renderSeed(guest(spec)).map(({ name, content }) => [name, Buffer.from(content as string).toString()]));

/** The variables of `seed.env` as a shell reads them. */
function source(environment: string, name: string): string {
  const script = `set -u\n${environment}printf %s "$${name}"`;
  return execFileSync("sh", ["-c", script], { encoding: "utf8" });
}
type Config = Readonly<Record<string, unknown>>;
const readConfig = (text: string): Config => {
  assert.match(text, /^#cloud-config\n/);
  return JSON.parse(text.slice(text.indexOf("\n"))) as Config;
};
/** The parts of a message, each with its decoded body. */
function parts(text: string): string[] {
  const boundary = /boundary="([^"]+)"/.exec(text)?.[1] ?? "";
  const [, ...found] = text.split(`--${boundary}`);
  assert.equal(found.pop(), "--\n");
  return found.map((part) =>
    /base64/.test(part) ? Buffer.from(part.slice(part.indexOf("\n\n")), "base64").toString() : part.trim(),
  );
}

test("a shell reads back any text as it was", () => {
  const content = anyText(80).filter((text) => !/\0|\n$/.test(text));
  const hostile = fc.constantFrom("'; reboot; '", "$(id)", "`id`", "\\", "'\\''", '"', "a\nb='c'");
  fc.assert(
    fc.property(fc.oneof(content, hostile), (text) => {
      assert.equal(source(`X=${quoteShell(text)}\n`, "X"), Buffer.from(text).toString());
    }),
    { numRuns: 30 },
  );
});

test("an SSH key may contain any text of one line", () => {
  const anyKey = anyText(80, 1).filter((text) => !/\p{Cc}/u.test(text));
  fc.assert(
    fc.property(fc.array(anyKey, { maxLength: 4 }), (sshKeys) => {
      const written = files({ sshKeys });
      const keys = sshKeys.map((key) => Buffer.from(key).toString());
      assert.equal(source(written.get("seed.env") ?? "", "SSH_KEYS"), keys.join("\n"));
      const [user] = readConfig(written.get("user-data") ?? "")["users"] as [Config];
      assert.deepEqual(user["ssh_authorized_keys"], keys);
    }),
    { numRuns: 30 },
  );
});

test("refuses invalid settings", () => {
  const wrong: Partial<Guest>[] = [
    { instanceId: "a b" },
    { instanceId: "" },
    { hostName: "a'b" },
    { hostName: "-a" },
    { hostName: "a\n" },
    { hostName: "x".repeat(64) },
    { adminUser: "root; id" },
    { passwordHash: "$6$a$b'" },
    { sshKeys: ["ssh-ed25519 AAAA\nssh-ed25519 BBBB"] },
    { sshKeys: ["ssh-ed25519 AAAA\u0000"] },
    { nameServers: ["dns.example"] },
    { nics: [{ ...nic, mac: "02:42:00:00:00:1F" }] },
    { nics: [{ ...nic, addresses: ["10.0.0.1"] }] },
    { nics: [{ ...nic, addresses: ["10.0.0.1/33"] }] },
    { nics: [{ ...nic, addresses: ["10.0.0.1/24|x"] }] },
    { nics: [{ ...nic, gateway4: "fd24::1" }] },
    { nics: [{ ...nic, gateway6: "10.0.0.1" }] },
    { nics: [{ ...nic, mtu: 1.5 }] },
  ];
  for (const spec of wrong) assert.throws(() => renderSeed(guest(spec)), /^Error: seed: /, JSON.stringify(spec));
});

test("seed.env has one line per NIC", () => {
  const nics = [nic, { ...nic, mac: "02:42:00:00:00:20", addresses: [], gateway4: null, mtu: null, dhcp: true }];
  const text = files({ nics }).get("seed.env") ?? "";
  const [first, second] = source(text, "CARDS").split("\n");
  assert.equal(first, "02:42:00:00:00:1f|10.63.0.2/16|10.63.0.1|fd24::2/64||1450|");
  assert.equal(second, "02:42:00:00:00:20||||||dhcp");
  assert.equal(source(text, "NAME_SERVERS"), "9.9.9.9 2620:fe::fe");
  assert.equal(source(text, "PASSWORD_HASH"), "$6$salt$hash");
  assert.equal(source(files({ passwordHash: null }).get("seed.env") ?? "", "PASSWORD_HASH"), "*");
});

type Ethernets = Readonly<Record<string, { readonly routes: readonly object[] }>>;

test("cloud-init gets the same network settings", () => {
  const written = files();
  assert.deepEqual(JSON.parse(written.get("meta-data") ?? ""), { "instance-id": "i-17-1", "local-hostname": "web-1" });
  assert.deepEqual(JSON.parse(written.get("network-config") ?? ""), {
    version: 2,
    ethernets: {
      card0: {
        match: { macaddress: nic.mac },
        dhcp4: false,
        mtu: 1450,
        addresses: nic.addresses,
        "accept-ra": false,
        nameservers: { addresses: ["9.9.9.9", "2620:fe::fe"] },
        routes: [{ to: "0.0.0.0/0", via: "10.63.0.1", metric: 101 }],
      },
    },
  });
  const second = { ...nic, mac: "02:42:00:00:00:20", gateway6: "fd24::1" };
  const both = JSON.parse(files({ nics: [nic, second] }).get("network-config") ?? "") as { ethernets: Ethernets };
  assert.deepEqual(both.ethernets["card1"]?.routes, [
    { to: "0.0.0.0/0", via: "10.63.0.1", metric: 102 },
    { to: "::/0", via: "fd24::1", metric: 102 },
  ]);
  const config = readConfig(written.get("user-data") ?? "");
  assert.equal(config["final_message"], readyMark("i-17-1"));
  assert.match(JSON.stringify(config["runcmd"]), /sync; echo 'BRUME-READY/);
  assert.equal(config["merge_how"], undefined);
  assert.equal(written.has("user-script"), false);
});

test("the user's part comes first and complete, ours extends it", () => {
  for (const userData of [
    "#cloud-config\npackages: [git]\n",
    "#!/bin/sh\necho 'é'\n",
    "#include\nhttps://a.example\n",
  ]) {
    const [theirs = "", ours = ""] = parts(files({ userData }).get("user-data") ?? "");
    assert.equal(theirs, userData);
    assert.ok(readConfig(ours)["merge_how"]);
  }
});

test("Tiny Linux gets a script, or a config that can be translated", () => {
  const script = "#!/bin/sh\nid\n";
  const packed = gzipSync(script);
  for (const userData of [script, Buffer.from(script), packed, packed.toString("base64")])
    assert.equal(files({ userData }).get("user-script"), script);
  assert.match(
    files({ userData: "#cloud-config\nhostname: h\n" }).get("user-script") ?? "",
    /^#!.*^set_host_name 'h'/ms,
  );
  for (const userData of ["#cloud-config\npackages: [x]\n", "  #!/bin/sh\n"])
    assert.equal(files({ userData }).has("user-script"), false);
});

test("a user's MIME message is embedded unchanged", () => {
  const multipart = `Content-Type: multipart/mixed; boundary="b"
MIME-Version: 1.0

--b
Content-Type: text/x-shellscript

#!/bin/sh
--b--`;
  const [first] = parts(files({ userData: multipart }).get("user-data") ?? "");
  assert.equal(first, multipart);
});

test("the longest user data still fits on the volume", () => {
  const userData = `#!/bin/sh\n${"x".repeat(499_990)}`;
  assert.ok(writeSeed(renderSeed(guest({ userData }))).includes(userData.slice(0, 400)));
});

test("empty user data is ignored; too large or broken data is refused with a reason", () => {
  assert.match(files({ userData: " \n" }).get("user-data") ?? "", /^#cloud-config/);
  const refused = (userData: string | Uint8Array) =>
    assert.throws(() => renderSeed(guest({ userData })), /^Error: User data /);
  refused("x".repeat(500_001));
  refused(gzipSync(Buffer.alloc(30_000_000)));
  refused(Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]));
});
