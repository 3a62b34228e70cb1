/**
 * Hostile messages to the host agent, as a control plane sends them that an attacker controls. Each begins as a valid input of a verb, of
 * which some values are replaced; so they reach every field.
 */
import { contract } from "../../service/src/agent/contract/contract.ts";
import { protocol, type Verb } from "../../service/src/agent/contract/verb.ts";
import { machine } from "./machinelab.ts";
import { image, port, rule } from "./networkspec.ts";
import type { Random } from "./random.ts";

/** A message: the name of a verb and its body. */
export interface Message {
  readonly group: string;
  readonly method: string;
  readonly body: unknown;
}

const key = Buffer.alloc(32, 7).toString("base64");
const tunnel = { id: 3, enabled: true, mtu: 1400, localSubnets: ["10.64.0.8/29"], peerSubnets: ["192.0.2.0/24"] };
const { id, mac, addresses, bandwidth, name } = port(1, "10.64.0.10");
const portRow = [id, mac, addresses, bandwidth, name];
const listKey = "00000000-0000-4000-8000-000000000001";
const network = {
  ...image(),
  firewall: { enabled: true, allow: false, rules: [rule({ source: ["198.51.100.0/24"] })] },
  ports: [portRow],
  tunnels: [
    {
      ...tunnel,
      type: "ipsec",
      ikeVersion: 2,
      encryption: "aes256",
      digest: "sha256",
      dhGroup: 14,
      perfectForwardSecrecy: true,
      sharedKey: "0123456789abcdef",
      localIdentity: "10.64.255.2",
      peer: "192.0.2.1",
      peerIdentity: "192.0.2.1",
    },
    {
      ...tunnel,
      id: 4,
      type: "wireguard",
      peerPublicKey: key,
      presharedKey: null,
      endpoint: "192.0.2.9:51820",
      keepAlive: 0,
    },
  ],
  wireguard: { privateKey: key, listenPort: 51_820 },
};
const server = {
  ...machine({ nics: [{ id: 1, mac: "02:42:00:00:00:01" }], name: "one" }),
  seed: [{ name: "user-data", content: "x" }],
};
const about = { title: "One", family: "Linux", minRam: 128 };
const sum = "0".repeat(64);

/** Valid inputs of each verb. */
export const inputs: Readonly<Record<string, readonly object[]>> = {
  "session.hello": [{ protocol, release: "1.0.0", fence: 1 }],
  "session.cancel": [{ request: "a-1" }],
  "machines.ensureDisk": [
    { machine: server, source: { image: "brume-tiny" } },
    { machine: server, source: { server: 2 } },
  ],
  "machines.ensureIdentityRemoved": [{ id: 1, version: 1 }],
  "machines.ensureOnlyDisk": [{ id: 1, version: 1 }],
  "machines.ensureRunning": [{ machine: server }],
  "machines.ensureStopped": [{ id: 1, how: "cut" }],
  "machines.apply": [{ machine: server }],
  "machines.remove": [{ id: 1 }],
  "machines.holdDisks": [{ id: 1 }],
  "images.ensureFetched": [{ name: "no-such-image" }],
  "images.ensureImported": [
    { name: "mine", about, origin: { file: "disk.img", sha256: null } },
    { name: "mine", about, origin: { url: "http://127.0.0.1:1/disk", sha256: sum } },
  ],
  "images.checkOrigin": [{ origin: { file: "disk.img", sha256: null } }],
  "images.ensureSnapshot": [{ id: 1, name: "mine" }],
  "images.ensureImage": [{ id: 1, name: "mine", about: { title: "One", keepsIdentity: true } }],
  "images.removeImage": [{ name: "mine" }],
  "images.readImages": [{ names: ["mine", "other"] }],
  "consoles.readLog": [{ id: 1, spec: { previous: false, tail: 10 } }],
  "consoles.openSerial": [{ id: 1 }],
  "consoles.openVnc": [{ id: 1 }],
  "contents.openFile": [
    { of: { image: "mine" }, file: 0, from: 0 },
    { of: { copy: 1 }, file: 0, from: 0 },
  ],
  "contents.writeFile": [
    { of: { image: "new" }, file: 0, from: 0 },
    { of: { copy: 9 }, file: 0, from: 0 },
  ],
  "contents.listFiles": [{ of: { image: "mine" } }, { of: { copy: 1 } }],
  "contents.expectFiles": [
    { of: { image: "new" }, files: [{ number: 0, name: "image.json", bytes: 0, sha256: sum }] },
    { of: { copy: 9 }, files: [{ number: 0, name: "disk-1/0.qcow2", bytes: 10, sha256: sum }] },
  ],
  "contents.completeFiles": [{ of: { image: "new" } }, { of: { copy: 9 } }],
  "uploads.openUpload": [{ name: "own-9", from: 0, bytes: 10 }],
  "uploads.syncUpload": [{ name: "own-9", least: 0 }],
  "uploads.removeUpload": [{ name: "own-9" }],
  "router.apply": [
    { spec: network },
    { spec: { ...network, ports: { key: listKey, from: null, rows: [portRow], removed: [] } } },
    { spec: { ...network, ports: { key: listKey, from: listKey, rows: [portRow], removed: [2] } } },
  ],
  "router.applyPorts": [{ change: { id: 7, from: 1, generation: 2, ports: [portRow], removed: [2] } }],
  "router.observePort": [{ network: 7, port: 1 }],
  "router.remove": [{ id: 7 }],
  "router.observe": [{ network: 7 }],
  "router.readBanner": [{ network: 7, address: "10.64.0.10", port: 22 }],
  "router.sourceTo": [{ destination: "192.0.2.1" }],
};

/** Texts that would be a path, an option, a command, a rule, a device or an object of someone else. */
const texts: readonly string[] = [
  "../../canary/secret",
  "../canary",
  "/etc/passwd",
  "/proc/self/root",
  "..",
  ".",
  "",
  "a/../../canary",
  "link",
  "link-file",
  "brume-tiny.part",
  "1.copy",
  "1.gone",
  "state.json",
  "-rf",
  "--help",
  "-o ProxyCommand=id",
  "$(touch /tmp/owned)",
  "`id`",
  "; ip link del dummy0",
  "a\nadd table inet owned",
  "a\0b",
  "\u2028",
  "eth0",
  "lo",
  "dummy0",
  "foreign0",
  "brzzzt1",
  "bzzzt1",
  "brume_zzz",
  "brume-zzz-1",
  "br0",
  "tap0",
  "10.64.0.10 dev dummy0",
  "0.0.0.0/0",
  "::/0",
  "127.0.0.1",
  "127.0.0.0/8",
  "169.254.169.254",
  "198.51.100.1",
  "198.51.100.0/24",
  "8.8.8.0/24",
  "10.64.0.9/29",
  "10.64.0.0/33",
  "010.1.1.1",
  "fe80::1",
  "fe80::1%dummy0",
  "02:42:00:00:00:00:00",
  "ff:ff:ff:ff:ff:ff",
  "file:///etc/passwd",
  "http://127.0.0.1:1/",
  "http://169.254.169.254/latest",
  "gopher://127.0.0.1/",
  "json:{}",
  "nbd://127.0.0.1/x",
  "fat:/etc",
  "__proto__",
  "constructor",
  "1.part",
  "%2e%2e%2fcanary",
  "x".repeat(300),
  "x".repeat(5000),
];

const others: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  2,
  7,
  4711,
  1.5,
  1e308,
  2 ** 31,
  2 ** 53,
  [],
  {},
  [[]],
  { image: "../../canary" },
  { server: -1 },
  { device: "dummy0" },
  { toString: "x" },
];

type Slot = { readonly holder: Record<string, unknown>; readonly name: string };

function slotsOf(value: unknown, found: Slot[] = []): Slot[] {
  if (typeof value !== "object" || value === null) return found;
  const holder = value as Record<string, unknown>;
  for (const name of Object.keys(holder)) {
    found.push({ holder, name });
    slotsOf(holder[name], found);
  }
  return found;
}

const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });

/** Replaces, removes or adds one value. */
function invalidate(random: Random, body: object): void {
  const slots = slotsOf(body);
  if (slots.length === 0) return;
  const { holder, name } = random.pick(slots);
  if (random.chance(8)) delete holder[name];
  else if (random.chance(6))
    holder[random.pick(["device", "path", "argv", "command", "__proto", "nft"])] = random.pick(texts);
  else if (random.chance(3))
    holder[name] = random.pick([deep(200), Array.from({ length: 300 }, () => random.pick(texts))]);
  else holder[name] = random.chance(65) ? random.pick(texts) : structuredClone(random.pick(others));
}

const verbs = Object.entries(contract).flatMap(([group, table]) =>
  Object.entries(table as Readonly<Record<string, Verb>>).map(([method, verb]) => ({ group, method, verb })),
);

const namesOf = (isStream: boolean): string[] =>
  verbs.filter(({ verb }) => (verb.stream !== undefined) === isStream).map(({ group, method }) => `${group}.${method}`);
/** Names of the verbs, `router.apply`: those with a response, and those whose connection becomes a stream. */
const names = { responses: namesOf(false), streams: namesOf(true) } as const;

/** Returns a message to the verb of this number, counted over all verbs of the kind again and again. */
export function createMessage(random: Random, at: number, kind: keyof typeof names = "responses"): Message {
  const name = names[kind][at % names[kind].length] ?? "";
  const [group = "", method = ""] = name.split(".");
  const body = structuredClone(random.pick(inputs[name] ?? [{}]));
  const times = 1 + random.below(3);
  for (let turn = 0; turn < times; turn++) invalidate(random, body);
  if (Object.keys(body).length === 0)
    Object.assign(body, { [random.pick(texts.slice(0, 8)) || "x"]: random.pick(texts) });
  return { group, method, body };
}
