/**
 * `npm run tour`: demonstrates the main features step by step, as a client uses them. It runs its own service, on free ports and
 * free addresses and in a temporary data folder, so it can run beside an installation. Where real servers or networks are not possible,
 * it prints this, continues with simulated ones, and skips the steps that need a guest. It removes everything at the end, also after an error.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Action } from "@brume/api/action.ts";
import { type Client, createClient } from "@brume/api/client.ts";
import { type Contract, contract } from "@brume/api/contract.ts";
import type { Operation } from "@brume/api/operation.ts";
import type { Server } from "@brume/api/server.ts";
import { type Addresses, contains, parseAddresses } from "../service/src/base/address.ts";
import { quoteShell } from "../service/src/base/quote.ts";

const root = resolve(import.meta.dirname, "..");
const begun = performance.now();
const { isTTY } = process.stdout;
const paint = (code: string, text: string) =>
  isTTY && !process.env["NO_COLOR"] ? `\x1b[${code}m${text}\x1b[0m` : text;
const clear = () => void (isTTY && process.stdout.write("\r\x1b[K"));
const elapsed = () => `${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s`;
const write = (line: string) => {
  clear();
  process.stdout.write(`${line}\n`);
};
const title = (text: string) => write(`\n${elapsed()}  ${paint("1", text)}`);
const command = (text: string) => write(`          ${paint("36", `$ ${text}`)}`);
const came = (text: string) => write(`${elapsed()}  ${text}`);
/** Shows progress on a line that the next one replaces; on a terminal only. */
const passing = (text: string) => void (isTTY && process.stdout.write(`\r\x1b[K${elapsed()}  ${text} …`));

/** Aborted when the tour must stop: Ctrl-C, or the end of the terminal. */
const stop = new AbortController();
const { signal } = stop;
// Under npm, Ctrl-C sends SIGINT twice. The second one must not interrupt the cleaning.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop.abort(new Error("stopped")));

const isInstalled = (name: string) => spawnSync("sh", ["-c", 'command -v "$0"', name], { env }).status === 0;
const { BRUME_SIMULATE } = process.env;
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("BRUME_"))),
  ...(BRUME_SIMULATE !== undefined && { BRUME_SIMULATE }),
  // Programs that the set-up unpacked, and daemons for a PATH without sbin.
  PATH: `${root}/.engines/bin:${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`,
};

/** Returns two blocks without a route on this host, so that they do not overlap with an installation. */
function freePools(): { readonly open: string; readonly shared: string } {
  const { stdout } = spawnSync("ip", ["-4", "-o", "route", "show", "table", "all"], { encoding: "utf8", env });
  const taken = [...(stdout ?? "").matchAll(/\b\d+\.\d+\.\d+\.\d+(?:\/\d+)?/g)].map(([block]) => parseAddresses(block));
  const isFree = (block: Addresses) =>
    !taken.some((other) => contains([other], block.first) || contains([block], other.first));
  const free = Array.from({ length: 128 }, (_, i) => `10.${64 + i}.0.0/16`).filter((block) =>
    isFree(parseAddresses(block)),
  );
  const [open, shared] = free;
  if (open === undefined || shared === undefined)
    throw new Error("no two /16 blocks from 10.64.0.0 to 10.191.0.0 are free on this host");
  return { open, shared };
}

interface Service {
  readonly client: Client;
  /** `host:port` of the name server. */
  readonly dns: string;
  readonly child: ChildProcess;
}

async function startService(folder: string): Promise<Service> {
  const pools = freePools();
  const settings = {
    BRUME_DATA: folder,
    BRUME_LISTEN: "127.0.0.1:0",
    BRUME_DNS_LISTEN: "127.0.0.1:0",
    BRUME_PUBLIC_POOL: pools.open,
    BRUME_SHARED_POOL: pools.shared,
    // No queries to resolvers.
    BRUME_DNS_RESOLVERS: ",",
  };
  command(`BRUME_DATA=${folder} BRUME_LISTEN=127.0.0.1:0 BRUME_DNS_LISTEN=127.0.0.1:0 npm start`);
  // In a process group of its own: Ctrl-C stops the tour, which then stops the service.
  const child = spawn(process.execPath, [join(root, "service/dist/main.js")], {
    cwd: root,
    env: { ...env, ...settings },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  running = child;
  passing("starts, and tries the engines of this host");
  const output: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("engines: ")) came(line.slice("engines: ".length));
  });
  return new Promise((done, failed) => {
    const lines = createInterface({ input: child.stderr });
    lines.on("line", (line) => {
      output.push(line);
      const entry = line.startsWith("{") ? (JSON.parse(line) as Record<string, unknown>) : {};
      if (entry["msg"] !== "ready") return;
      const url = `http://${String(entry["address"])}`;
      const token = readFileSync(join(folder, "token"), "utf8").trim();
      came(`API ${url}, name server ${String(entry["dns"])}`);
      command(`api=${url}`);
      command(`brume() { curl -sS -w '\\n' -H "Authorization: Bearer $(cat ${folder}/token)" "$@"; }`);
      done({ client: createClient({ url, token }), dns: String(entry["dns"]), child });
    });
    lines.once("close", () => failed(new Error(`the service ended: ${output.slice(-3).join("\n")}`)));
  });
}
let running: ChildProcess | null = null;

/** Returns a function that calls an operation and prints the equivalent curl command. */
function caller(client: Client) {
  return async <N extends keyof Contract>(
    name: N,
    ...args: Parameters<Client[N]>
  ): Promise<Awaited<ReturnType<Client[N]>>> => {
    signal.throwIfAborted();
    const [input = {}, options = {}] = args as [{ path?: Record<string, number>; body?: unknown }?, { wait?: number }?];
    const { method, path }: Operation = contract[name];
    const address = path.replaceAll(/\{(\w+)\}/g, (_, key: string) => String(input.path?.[key]));
    const verb = method === "GET" || method === "POST" ? "" : `-X ${method} `;
    const prefer = options.wait === undefined ? "" : `-H 'Prefer: wait=${options.wait}' `;
    const data = input.body === undefined ? "" : ` -d ${quoteShell(JSON.stringify(input.body))}`;
    command(`brume ${prefer}${verb}$api${address}${data}`);
    const call = client[name] as unknown as (input: object, options: object) => Promise<Awaited<ReturnType<Client[N]>>>;
    return call(input, { ...options, signal });
  };
}

async function run(argv: readonly [string, ...string[]]): Promise<string> {
  command(argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`)).join(" "));
  const child = spawn(argv[0], argv.slice(1), { env, signal, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${argv[0]} ended with ${code}: ${output.trim()}`);
  for (const line of output.split("\n")) if (line.trim() !== "") came(line);
  return output;
}

/** Returns whether a program accepts connections on the port within 3 s. */
const acceptsConnections = (host: string, port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect({ host, port });
    const end = (open: boolean) => {
      socket.destroy();
      done(open);
    };
    socket.setTimeout(3000, () => end(false));
    socket.once("connect", () => end(true)).once("error", () => end(false));
  });

async function untilAccepts(host: string, port: number): Promise<void> {
  for (
    const end = Date.now() + 60_000;
    !(await acceptsConnections(host, port));
    await sleep(200, undefined, { signal })
  )
    if (Date.now() > end) throw new Error(`${host} does not accept connections on port ${port}`);
}

/** Prints the steps of a server's newest action until it has completed. Throws if it fails. */
async function follow(client: Client, server: Server, before = ""): Promise<Action> {
  const shown = new Set<string>();
  for (;;) {
    const [action] = await client.listActions({ path: { id: server.ID } }, { signal });
    if (action === undefined) throw new Error(`server ${server.ID} has no action`);
    for (const { Name, State, Detail } of action.Steps) {
      if (State === "Completed" && !shown.has(Name)) came(`${before}${Name}${Detail && `: ${Detail}`}`);
      if (State === "Completed") shown.add(Name);
      if (State === "InProgress") passing(`${before}${Name} ${action.Progress} %${Detail && `: ${Detail}`}`);
    }
    if (action.State === "Completed") return action;
    if (action.EndDate !== null)
      throw new Error([action.Error?.detail, ...(action.Error?.log ?? "").split("\n")].join("\n          "));
    await sleep(200, undefined, { signal });
  }
}

async function tour(folder: string): Promise<void> {
  title("Start a service for the tour");
  const { client, dns } = await startService(folder);
  const call = caller(client);
  const [location] = await client.listLocations();
  const isReal = location?.Engines.Machine === "host" && location.Engines.Router === "host";
  if (!isReal)
    came(paint("33", "Servers or networks are simulated here: steps that need a running guest are skipped."));

  title("Create a public network for five servers");
  const network = await call("createPublicNetwork", { body: { Name: "tour" } }, { wait: 30 });
  came(`${network.CIDR} behind ${network.EdgeExternalIp}, ${network.State}`);

  title("Create a server in it, with an SSH key and a start-up script");
  const key = join(folder, "tour-key");
  const canLogIn = isReal && isInstalled("ssh") && isInstalled("ssh-keygen");
  const SshKeys: number[] = [];
  if (canLogIn) {
    await run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tour", "-f", key]);
    const PublicKey = readFileSync(`${key}.pub`, "utf8").trim();
    SshKeys.push((await call("createSshKey", { body: { Title: "tour", PublicKey } })).ID);
  }
  const size = { CPU: 1, RAM: 128, HDD: 1 } as const;
  const UserData = "#!/bin/sh\nmkdir /www && echo 'Hello from '$(hostname) >/www/index.html && httpd -h /www";
  const spec = { Name: "web", ...size, NetworkID: network.Id, SshKeys, UserData };
  const WaitFor = isReal ? "Ssh" : "Power";
  const web = await call("createServer", { body: { ...spec, WaitFor } });
  came(`server ${web.ID}, ${web.IP}, ${web.State}`);
  await follow(client, web);
  const now = await call("readServer", { path: { id: web.ID } });
  came(`${now.State}, ${now.IsPowerOn ? "on" : "off"}`);

  const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"];
  const login = (server: Server, task: string) =>
    run(["ssh", "-i", key, ...options.flatMap((option) => ["-o", option]), `root@${server.IP}`, task]);
  if (canLogIn) {
    title("Log in with ssh");
    await login(web, "uname -sr; nproc; free -m | sed -n 2p; df -h / | tail -n 1");
  }

  title("Create a DNS name for it");
  const domain = await call("createDomain", { body: { Name: "tour.example" } });
  await call("createRecordA", { body: { DomainId: domain.ID, Name: "www", IP: web.IP, TTL: 60 } });
  const [address = "", port = ""] = dns.split(":");
  if (isInstalled("dig")) await run(["dig", "+noall", "+answer", `@${address}`, "-p", port, "www.tour.example"]);
  else came("dig is not installed: skipped");
  if (isReal) {
    await untilAccepts(web.IP, 80);
    const page = await fetch(`http://${web.IP}/`, { signal });
    command(`curl --resolve www.tour.example:80:${web.IP} http://www.tour.example/`);
    came((await page.text()).trim());
  }

  title("Set its firewall: ssh only, then ssh and http");
  const allow = (port: string) => ({
    ...({ Name: `port ${port}`, Action: "Allow", Protocol: "Tcp", Source: "external", DestinationPort: port } as const),
    Destination: "internal",
  });
  for (const open of [[22], [22, 80]]) {
    const Rules = open.map((each) => allow(String(each)));
    await call("configureFirewall", { path: { id: network.Id }, body: { Rules } }, { wait: 30 });
    const packet = { Protocol: "Tcp", Source: "192.0.2.1", Destination: web.IP, DestinationPort: 80 } as const;
    const { Verdict, Reason } = await call("checkFirewall", { path: { id: network.Id }, body: packet });
    came(`${Verdict}: ${Reason}`);
    const expected = open.includes(80);
    if ((Verdict === "Allow") !== expected) throw new Error("the packet check does not match the rules");
    if (!isReal) continue;
    passing(`connects to ${web.IP}:80`);
    if ((await acceptsConnections(web.IP, 80)) !== expected)
      throw new Error("packets are not treated as the packet check predicts");
    came(`${web.IP}:80 ${expected ? "accepts connections" : "does not respond"}`);
  }

  title("Create and delete a group of three servers");
  const group = { Name: "node-{n}", Count: 3, ...size, NetworkID: network.Id, SshKeys, WaitFor } as const;
  const batch = await call("createBatch", { body: group });
  await Promise.all(batch.Servers.map((server) => follow(client, server, `${server.Name} `)));
  if (canLogIn) await login(web, batch.Servers.map(({ IP }) => `ping -c 1 -q ${IP} | tail -n 1`).join("; "));
  await call("deleteBatch", { body: { ID: batch.ID } }, { wait: 60 });
  const left = await call("listServers");
  came(`remaining: ${left.map(({ Name }) => Name).join(", ")}`);
  if (left.length !== 1) throw new Error("the group was not deleted");

  title("Delete everything");
  await call("deleteServer", { path: { id: web.ID } }, { wait: 60 });
  await call("deleteDomain", { path: { id: domain.ID } });
  await call("deletePublicNetwork", { path: { id: network.Id } }, { wait: 30 });
  const counts = [await client.listServers(), await client.listDomains(), await client.listPublicNetworks()];
  came(`remaining servers, domains and networks: ${counts.map(({ length }) => length).join(", ")}`);
  if (counts.some(({ length }) => length > 0)) throw new Error("some objects were not deleted");
}

/** Stops the service of the tour and removes its objects from the host and its data folder. */
async function cleanUp(folder: string): Promise<void> {
  if (running !== null && running.exitCode === null && running.signalCode === null) {
    running.kill("SIGTERM");
    const ended = once(running, "exit");
    const late = new AbortController();
    await Promise.race([ended, sleep(20_000, undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
    if (running.exitCode === null) running.kill("SIGKILL");
    await ended;
  }
  if (running !== null) {
    const down = spawn(process.execPath, [join(root, "scripts/down.ts")], {
      cwd: root,
      detached: true,
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...env, BRUME_DATA: folder, BRUME_LISTEN: "127.0.0.1:1" },
    });
    let output = "";
    down.stderr?.on("data", (text) => (output += String(text)));
    const [code] = (await once(down, "exit")) as [number | null];
    if (code !== 0) throw new Error(`npm run down with BRUME_DATA=${folder} failed: ${output}`);
  }
  rmSync(folder, { recursive: true, force: true });
}

const folder = mkdtempSync(join(tmpdir(), "brume-tour-"));
try {
  await tour(folder);
} catch (error) {
  process.exitCode = 1;
  const why = signal.aborted ? "stopped" : error instanceof Error ? error.message : String(error);
  came(paint("31", `The tour failed: ${why}`));
}
try {
  passing("cleans up");
  await cleanUp(folder);
  came("Everything of the tour is removed from this host.");
} catch (error) {
  process.exitCode = 1;
  came(
    paint(
      "31",
      `Some objects of the tour could not be removed: ${error instanceof Error ? error.message : String(error)}`,
    ),
  );
}
if (process.exitCode !== 1) write(`\n${elapsed()}  ${paint("32", "The tour completed.")}`);
