/**
 * A host of its own for `agent.test.ts`: a process in new network, mount and process namespaces, with an agent on the real drivers, and
 * beside it what belongs to others. Sends the corpus to the agent's socket and prints as JSON what changed.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { createChecker } from "../../service/src/agent/check.ts";
import { contract } from "../../service/src/agent/contract/contract.ts";
import { headers as names, protocol, type Verb } from "../../service/src/agent/contract/verb.ts";
import { refuseOutside } from "../../service/src/agent/pools.ts";
import { createAgent } from "../../service/src/agent/server.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { createContents } from "../../service/src/drivers/content/folder.ts";
import { createUploads } from "../../service/src/drivers/content/uploads.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { readImage } from "../../service/src/drivers/machine/image/manifest.ts";
import { createOperatorImages } from "../../service/src/drivers/machine/image/operatorimages.ts";
import { detect } from "../../service/src/drivers/router/linux/detect.ts";
import { createLinux } from "../../service/src/drivers/router/linux/linux.ts";
import { createMessage, type Message } from "../support/agentcorpus.ts";
import { description } from "../support/agentlab.ts";
import { createMachineLab, findCapabilities } from "../support/machinelab.ts";
import { createRandom, runsOf } from "../support/random.ts";

const [count = 0, seed = 0] = process.argv.slice(2, 4).map(Number);
/** Verbs of which at least five messages reach the driver, also if that takes more than `count` messages. */
const reaching = (process.argv[4] ?? "").split(",");
const random = createRandom(seed);
const run = (...argv: [string, ...string[]]) => exec.run(argv, { timeout: 60_000 });

await run("mount", "-t", "tmpfs", "none", "/run/netns");
// The devices of the new network namespace.
await run("mount", "-t", "sysfs", "none", "/sys");
await run("ip", "link", "set", "lo", "up");
for (const link of ["dummy0 type veth peer name dummy1", "foreign0 type bridge", "brzzzt1 type bridge"])
  await run("ip", "link", "add", ...link.split(" "));
await run("ip", "tuntap", "add", "dev", "bzzzt1", "mode", "tap");
await run("ip", "addr", "add", "198.51.100.1/24", "dev", "dummy0");
await run("ip", "link", "set", "dummy0", "up");
await run("ip", "route", "add", "default", "via", "198.51.100.254");
await run("ip", "netns", "add", "brume-zzz-1");
await exec.run(["nft", "-f", "-"], {
  stdin: "table inet brume_zzz { chain input { type filter hook input priority 0; tcp dport 9 drop; }; }\n",
});

const found = await findCapabilities();
if ("hindrance" in found) throw new Error(found.hindrance);
const lab = createMachineLab(found.capabilities);
const root = dirname(lab.servers);
const canary = join(root, "canary");
for (const folder of [canary, ...["import", "incoming", "uploads"].map((name) => join(root, name))]) mkdirSync(folder);
for (const file of ["canary/secret", "canary/image.json", "import/disk.img"])
  writeFileSync(join(root, file), `content of ${file}`);
symlinkSync(canary, join(lab.images, "link"));
symlinkSync(join(canary, "secret"), join(root, "import", "link-file"));
symlinkSync(canary, join(root, "import", "link"));

const qemu = await lab.open();
const operator = createOperatorImages({ exec, dataFolder: root, isOwn: () => false, now: Date.now }, false);
const runFolder = join(root, "run");
const router = createLinux({
  exec,
  tag: lab.tag,
  hostNamespace: null,
  runFolder,
  capabilities: await detect(exec, `brume-${lab.tag}_try`),
  tunnels: [],
  opened: [],
  now: Date.now,
});
const agent = createAgent({
  drivers: {
    machines: qemu,
    images: { ...qemu, ...operator },
    consoles: qemu,
    router,
    contents: createContents({
      images: [lab.images],
      servers: lab.servers,
      incoming: join(root, "incoming"),
      checkImage: async (folder, name) => void (await readImage(folder, name)),
      now: Date.now,
    }),
    uploads: createUploads({ folder: join(root, "uploads"), now: Date.now }),
  },
  description: description(lab.tag),
  release: "test",
  log: silentLog,
  refuse: refuseOutside(["10.64.0.0/16"]),
  limits: { perSecond: Number.POSITIVE_INFINITY },
});
const path = join(root, "agent.sock");
await agent.listenUnix(path);

/** Returns the lines that describe a file or folder and all below. */
function filesIn(at: string): string[] {
  if (!existsSync(at)) return [`${at} missing`];
  const { mode, uid, size } = statSync(at);
  if (statSync(at).isDirectory())
    return [`${at} ${mode} ${uid}`, ...readdirSync(at).flatMap((name) => filesIn(join(at, name)))];
  return [`${at} ${mode} ${uid} ${size} ${createHash("sha256").update(readFileSync(at)).digest("hex")}`];
}

const processes = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      } catch {
        return "";
      }
    })
    .filter((line) => line !== "" && !/^(ip|nft|tc|sysctl|readlink) /.test(line));

/** Returns all that could be someone else's, as lines. */
async function readHost(): Promise<string[]> {
  const links = (await run("ip", "-o", "link")).replaceAll(/^\d+: /gm, "link ").replaceAll(/@if\d+|qlen \d+/g, "");
  const routes = await run("ip", "route", "show", "table", "all");
  const routes6 = await run("ip", "-6", "route", "show", "table", "all");
  const rules = `${await run("ip", "rule")}${await run("nft", "-s", "list", "ruleset")}`;
  const tables = rules.split(/\n(?=table )/).map((table) => table.trim().replaceAll("\n", "|"));
  return [
    ...links.split("\n"),
    ...`${routes}${routes6}`.split("\n").map((line) => `route ${line}`),
    ...tables,
    ...readdirSync("/run/netns").map((space) => `namespace ${space}`),
    ...processes().map((line) => `process ${line}`),
    ...[canary, join(root, "import"), "/etc/passwd", "/tmp/owned"].flatMap(filesIn),
    ...readdirSync(root).map((name) => `root ${name}`),
  ].filter((line) => line.trim() !== "" && line !== "route ");
}

/** Sends bodies over one connection without waiting, and resolves to the number of responses of each status. */
function sendAll(messages: readonly Message[], statuses: Map<string, number>): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(path);
    let text = "";
    let open = messages.length;
    socket.setEncoding("latin1");
    socket.on("data", (part) => {
      text += String(part);
      for (;;) {
        const head = text.indexOf("\r\n\r\n");
        if (head < 0) return;
        const length = Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1]);
        if (text.length < head + 4 + length) return;
        const code = /"code":"(\w+)"/.exec(text.slice(head, head + 60))?.[1] ?? text.slice(9, 12);
        statuses.set(code, (statuses.get(code) ?? 0) + 1);
        text = text.slice(head + 4 + length);
        if (--open === 0) {
          socket.end();
          resolve();
        }
      }
    });
    socket.on("error", reject);
    socket.on("close", () => (open > 0 ? reject(new Error(`${open} messages got no response`)) : undefined));
    socket.write(messages.map(requestOf).join(""), "latin1");
  });
}

let requests = 0;
function requestOf({ group, method, body }: Message): string {
  const bytes = Buffer.from(JSON.stringify(body));
  const lines = [
    `POST /${group}/${method} HTTP/1.1`,
    "host: agent",
    `${names.protocol}: ${protocol}`,
    `${names.request}: r-${++requests}`,
    `${names.fence}: 1000`,
    `${names.deadline}: 20000`,
    `content-length: ${bytes.length}`,
  ];
  return `${lines.join("\r\n")}\r\n\r\n${bytes.toString("latin1")}`;
}

/** Paths, programs, command lines and rules of the host. */
const ofHost = new RegExp(
  `${root}|/(?:run|proc|dev|sys|usr|tmp|var|etc)/|dnsmasq|charon|qemu|nsenter|unshare|setpriv|prlimit|netns|table inet|brume-${lab.tag}|\\bnft\\b`,
  "i",
);
/** Responses that name something of the host. */
const revealed: string[] = [];
let failures = 0;
function inspect({ group, method }: Message, response: string): void {
  if (response.includes("driver_failed")) failures++;
  // The error of an input repeats names of fields that the sender invented.
  if (response.includes('"code":"input_invalid"')) return;
  // The title of an image is a text of the sender.
  const body = response.slice(response.indexOf("\r\n\r\n")).replaceAll(/"title":"(?:[^"\\]|\\.)*"/g, "");
  const found = ofHost.exec(body);
  if (found !== null)
    revealed.push(`${group}.${method}: ${found.input.slice(Math.max(0, found.index - 200), found.index + 100)}`);
}

/** Sends one message that fits its schema, so that it reaches the driver, and waits for the end of the response. */
function sendValid(message: Message): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(path);
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (part) => (text += String(part)));
    socket.on("close", () => {
      inspect(message, text);
      resolve();
    });
    socket.on("error", () => {});
    socket.write(requestOf(message).replace("host: agent", "host: agent\r\nconnection: close"), "latin1");
  });
}

/** Requests a stream, writes to it if the agent opens it, and resolves to the code of its refusal or `101`. */
function sendStream(message: Message): Promise<string> {
  const { group, method, body } = message;
  return new Promise((resolve) => {
    const socket = connect(path);
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (part) => {
      text += String(part);
      if (!text.startsWith("HTTP/1.1 101")) return;
      socket.end(random.pick(["x", "../../canary/secret\n", "\0".repeat(70_000)]));
      setTimeout(() => socket.destroy(), 20);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!text.startsWith("HTTP/1.1 101")) inspect(message, text);
      resolve(/"code":"(\w+)"/.exec(text)?.[1] ?? text.slice(9, 12));
    });
    const lines = [
      `GET /${group}/${method}?input=${encodeURIComponent(JSON.stringify(body))} HTTP/1.1`,
      "host: agent",
      `${names.protocol}: ${protocol}`,
      `${names.request}: s-${++requests}`,
      `${names.fence}: 1000`,
      "connection: Upgrade",
      "upgrade: brume-bytes",
    ];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  });
}

const checkers = new Map<string, ReturnType<typeof createChecker>>();
function fits({ group, method, body }: Message): boolean {
  const name = `${group}.${method}`;
  const table = contract[group as keyof typeof contract] as Readonly<Record<string, Verb>>;
  const checker = checkers.get(name) ?? createChecker((table[method] as Verb).body, name);
  checkers.set(name, checker);
  try {
    // As it arrives: a removed element of a list is null.
    checker.check(JSON.parse(JSON.stringify(body)));
    return true;
  } catch {
    return false;
  }
}

/** Messages of each verb that reach the driver. Beyond, only messages that its schema must refuse are sent. */
const most = (name: string) =>
  name === "router.apply" ? runsOf(12, 8) : name.startsWith("session") ? 0 : runsOf(25, 10);

await qemu.observe();
const before = await readHost();
const statuses = new Map<string, number>();
const valid = new Map<string, number>();
const batch: Message[] = [];
let sent = 0;
const isComplete = (): boolean => sent >= count && reaching.every((name) => (valid.get(name) ?? 0) >= 5);
for (let at = 0; !isComplete(); at++) {
  const message = createMessage(random, at);
  const name = `${message.group}.${message.method}`;
  if (fits(message)) {
    const times = valid.get(name) ?? 0;
    if (times >= most(name)) continue;
    valid.set(name, times + 1);
    await sendValid(message);
    sent++;
    continue;
  }
  if (sent >= count || JSON.stringify(message.body).length > 60_000) continue;
  batch.push(message);
  sent++;
  if (batch.length >= 250) await sendAll(batch.splice(0), statuses);
}
if (batch.length > 0) await sendAll(batch, statuses);
/** Outcomes of the streams whose input fits, and of the others. */
const streams = { fitting: new Set<string>(), others: new Set<string>() };
for (let at = 0; at < runsOf(4000, 400); at++) {
  const message = createMessage(random, at, "streams");
  const length = encodeURIComponent(JSON.stringify(message.body)).length;
  if (length < 10_000) streams[fits(message) ? "fitting" : "others"].add(await sendStream(message));
}
// Two streams of a content that is expected.
const files = [{ number: 0, name: "image.json", bytes: 2, sha256: "0".repeat(64) }];
await sendValid({ group: "contents", method: "expectFiles", body: { of: { image: "new" }, files } });
for (const from of [0, 1])
  streams.fitting.add(
    await sendStream({ group: "contents", method: "writeFile", body: { of: { image: "new" }, file: 0, from } }),
  );
const after = await readHost();
for (const { id } of (await qemu.observe()).machines) await qemu.remove(id);
for (const { id } of (await router.observe()).networks) await router.remove(id);
const end = await readHost();
await agent.close();
await router.close();
await lab.close();

const without = (list: readonly string[], other: readonly string[]) => list.filter((line) => !other.includes(line));
/** Names of this installation, and command lines of its processes. */
const ownNames = new RegExp(`b${lab.tag}[utwx][0-9a-z]|brume[_-]${lab.tag}|^process .*=${runFolder}/`);
const report = {
  sent,
  reached: Object.fromEntries(valid),
  statuses: Object.fromEntries(statuses),
  streams: { fitting: [...streams.fitting].sort(), others: [...streams.others] },
  lost: without(before, after),
  foreign: without(after, before).filter((line) => !ownNames.test(line)),
  left: without(end, before),
  gone: without(before, end),
  failures,
  revealed: revealed.slice(0, 10),
  cpu: Math.round(process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6),
};
process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(0);
