/**
 * What clients see when a driver fails. Each verb of each driver interface fails in each way. The responses, actions, events and checks
 * that follow name the cause in plain words, and nothing of the host. `test/invariants/agentplain.test.ts` covers the side of the drivers.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Image } from "@brume/api/catalog.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Server } from "@brume/api/server.ts";
import { WebSocket } from "ws";
import type { Contract } from "../../service/src/agent/contract/contract.ts";
import { createPlain, plainDriver } from "../../service/src/agent/plain.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { CommandError } from "../../service/src/drivers/exec.ts";
import { DiskError } from "../../service/src/drivers/machine/disk/disk.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { onSqlite } from "../support/harness.ts";
import { createMovableClock, createNetworkFixture } from "../support/networkfixture.ts";
import { createServerApiFixture, debian } from "../support/serverapifixture.ts";
import { tiny } from "../support/testservice.ts";

const folder = "/tmp/brume-3f7a/servers/7";
const key = "c2VjcmV0IG9mIHRoZSB0dW5uZWw=";

/** One way to fail, and the cause that clients read. Flows do not retry a final error, so their actions end at once. */
interface Failure {
  readonly error: () => Error;
  readonly cause: RegExp;
}
const final = (error: Error): Error => Object.assign(error, { final: true });
const command = (stderr: string, why: string) => () =>
  final(new CommandError(["nsenter", `--net=${folder}`, "wg", "set", "private-key", key], 1, stderr, why));
const node = (code: string, text: string) => () =>
  final(Object.assign(new Error(`${code}: ${text}, open '${folder}/state.json'`), { code }));
const failures: Readonly<Record<string, Failure>> = {
  "a sentence": { error: () => new DiskError("layer 1.qcow2 is missing"), cause: /layer 1\.qcow2 is missing/ },
  "a missing file": {
    error: node("ENOENT", "no such file or directory"),
    cause: /something that it needs is missing on the host \(/,
  },
  "a missing right": { error: node("EPERM", "operation not permitted"), cause: /the host does not permit it \(/ },
  "a command": {
    error: command(`${key}:\n    at ${folder}/conf:3\nNo space left on device`, ""),
    cause: /the disk of the host is full \(/,
  },
  "a time-out": { error: command("", "took longer than 10000 ms"), cause: /it did not respond in time \(/ },
  "no text": { error: () => final(new Error("")), cause: /only the log of the (?:host|service) has the cause/ },
};
/** Nothing of this is in a response. */
const revealing =
  /\/tmp\b|state\.json|\bnsenter\b|undefined|\[object|\bnull[:;.]|E(?:NOENT|PERM)|\\n +at |c2VjcmV0|took longer/;

type Group = Exclude<keyof Contract, "session" | "contents">;
type VerbName = { [G in Group]: `${G}.${keyof Contract[G] & string}` }[Group];
type ServerVerb = `nameserver.${Exclude<keyof Nameserver, "onStart" | "close">}`;

/**
 * What a client does, as a function that resolves to what it reads. `times`: how often the driver fails, by default once.
 * `isSilent`: why the client does not see the cause.
 */
interface Case {
  readonly run: (cause: RegExp) => Promise<string>;
  readonly times?: number;
  readonly isSilent?: string;
}

const clock = createMovableClock();
/** The verb that fails, how often it still fails, and how often it has failed. */
interface Armed {
  readonly verb: string;
  readonly failure: Failure;
  left: number;
  calls: number;
}
let armed: Armed | undefined;

const failing = <Driver extends object>(driver: Driver, group: string): Driver =>
  new Proxy(driver, {
    get(target, name, receiver) {
      const method: unknown = Reflect.get(target, name, receiver);
      if (typeof method !== "function") return method;
      return (...args: readonly unknown[]): unknown => {
        const now = armed;
        if (now === undefined || now.verb !== `${group}.${String(name)}` || now.left === 0)
          return Reflect.apply(method, target, args);
        now.left -= 1;
        now.calls += 1;
        return Promise.reject(now.failure.error());
      };
    },
  });
const plain = createPlain(silentLog);
/** As `host.ts` does. The name server is part of the control plane. */
const wrapDriver = <Driver extends object>(driver: Driver, group: string): Driver =>
  group === "nameserver" ? failing(driver, group) : plainDriver(failing(driver, group), group, plain);

/** An image whose guests do not get a new identity by themselves. */
const foreign = { ...tiny, name: "foreign", title: "Foreign", folder: "foreign", guest: null };

onSqlite(
  "failing drivers",
  (harness) => {
    const servers = createServerApiFixture(harness);
    const networks = createNetworkFixture(harness, clock);
    const wait = { Prefer: "wait=60" };
    const noWait = { Prefer: "wait=0" };
    let names = 0;
    const send = async (line: string, body?: object | string, headers?: Readonly<Record<string, string>>) =>
      (await harness.request(line, body, headers)).text;
    const shared = <T>(make: () => Promise<T>): (() => Promise<T>) => {
      let made: Promise<T> | undefined;
      return () => (made ??= make());
    };
    /** Made once, before a driver fails. */
    const server = shared(async () => (await servers.server()).ID);
    const ofForeign = shared(async () => (await servers.server({ ImageID: foreign.name })).ID);
    const network = shared(async () => (await networks.network({ NetworkCapacity: "28" })).Id);
    const domain = shared(async () => (await harness.domain()).ID);
    const prepare = () => Promise.all([server(), ofForeign(), network(), domain()]);

    const act = async (Type: string, more = {}) =>
      send(`POST /server/${await server()}/action`, { Type, ...more }, wait);
    /** Repeats a request until the response fits. */
    async function until(line: string, fits: RegExp): Promise<string> {
      const end = performance.now() + 60_000;
      for (;;) {
        const text = await send(line);
        if (fits.test(text)) return text;
        if (performance.now() > end) assert.fail(`${line} never returned ${fits}, last: ${text}`);
        await networks.pass(6);
      }
    }
    /** Opens the console, and returns why it was closed. */
    async function watch(Type: "Serial" | "Vnc"): Promise<string> {
      const { Url } = await harness.client.openConsole({ path: { id: await server() }, body: { Type } });
      const socket = new WebSocket(Url);
      const [code, reason] = (await once(socket, "close")) as [number, Buffer];
      return JSON.stringify({ code, reason: String(reason) });
    }
    const create = async (body: object) => JSON.parse(await send("POST /server", body, wait)) as Server;
    async function upload(): Promise<string> {
      const { ID } = await harness.client.createImage({ body: { Name: "sent", Size: 4 } });
      const sent = await send(`PUT /image/${ID}/content`, "1234", { "Content-Range": "bytes 0-3/4" });
      return problemOf(sent) !== "" ? sent : until(`GET /image/${ID}`, /"State":"(?:Failed|Active)"/);
    }
    const write = async () => send("POST /image", { Name: "made", ServerID: await server() }, wait);
    const bring = () =>
      send("POST /image", { Name: "brought", Url: "https://images.example/a.raw", Sha256: "a".repeat(64) }, wait);
    const problemOf = (text: string): string => /"status":\d+,"detail":"([^"]*)"/.exec(text)?.[1] ?? "";
    const ofServer = async () => send(`GET /server/${await server()}`);

    /** Does the work with the failing driver. Some work begins after the response. */
    async function fail(current: Armed, work: () => Promise<string>): Promise<string> {
      armed = current;
      try {
        const text = await work();
        for (let turns = 0; current.calls === 0; turns++) {
          if (turns === 1000) assert.fail(`${current.verb} was not called; the last response: ${text}`);
          await networks.pass(1);
        }
        return text;
      } finally {
        armed = undefined;
      }
    }

    const ever = Number.POSITIVE_INFINITY;
    const cases: Record<VerbName | ServerVerb, Case | string> = {
      "machines.ensureDisk": { run: () => send("POST /server", { Name: "one" }, wait) },
      "machines.ensureIdentityRemoved": { run: async () => send(`POST /server/${await ofForeign()}/copy`, {}, wait) },
      "machines.ensureOnlyDisk": {
        times: ever,
        async run(cause) {
          await send(`POST /server/${await server()}/rebuild`, {}, wait);
          return until(`GET /server/${await server()}`, cause);
        },
      },
      "machines.ensureRunning": { run: () => act("PowerReboot") },
      // The request cuts the power at once, and the action does it again.
      "machines.ensureStopped": { run: () => act("PowerOff"), times: 2 },
      "machines.apply": { run: async () => send(`PUT /server/${await server()}`, { HDD: 100 }, wait) },
      "machines.remove": {
        times: ever,
        async run(cause) {
          const { ID } = await create({ Name: "removed" });
          await send(`DELETE /server/${ID}`, undefined, noWait);
          return until(`GET /server/${ID}/action`, cause);
        },
      },
      "machines.holdDisks": { run: async () => send("POST /disk-copy", { ServerID: await server() }) },
      "machines.releaseDisks": { run: () => send("DELETE /disk-copy") },
      "machines.observe": {
        times: ever,
        run: async () => (await send("GET /readyz")) + (await send("POST /disk-copy", { ServerID: await server() })),
      },
      "images.listOperatorImages": "only the start of the service calls it",
      "images.ensureFetched": { run: () => send("POST /server", { Name: "fetched", ImageID: debian.name }, wait) },
      "images.ensureImported": { run: bring },
      "images.checkOrigin": { run: bring },
      "images.ensureSnapshot": { run: write },
      "images.ensureImage": { run: write },
      "images.removeImage": {
        isSilent: "the image is deleted for clients, and the removal is repeated",
        run: async () => send(`DELETE /image/${(JSON.parse(await write()) as Image).ID}`),
      },
      "images.listImages": "only the search for orphans calls it, in the background",
      "images.readImages": "only the search for orphans calls it, in the background",
      "consoles.readLog": { run: async () => send(`GET /server/${await server()}/log`) },
      "consoles.openSerial": { run: () => watch("Serial"), isSilent: "the WebSocket closes with a fixed text" },
      "consoles.openVnc": { run: () => watch("Vnc"), isSilent: "the WebSocket closes with a fixed text" },
      "router.apply": {
        times: ever,
        async run(cause) {
          const { Id } = JSON.parse(await send("POST /publicnetwork", { Name: "broken" }, noWait)) as PublicNetwork;
          return until(`GET /publicnetwork/${Id}`, cause);
        },
      },
      "router.applyPorts": {
        async run() {
          const body = { Name: "port", NetworkID: await network() };
          const { ID } = JSON.parse(await send("POST /server", body, noWait)) as Server;
          return until(`GET /server/${ID}`, /"Active"/);
        },
      },
      "router.remove": {
        isSilent: "the network is deleted for clients, and the removal is repeated",
        async run() {
          const { Id } = await networks.network();
          return send(`DELETE /publicnetwork/${Id}`, undefined, noWait);
        },
      },
      "router.observe": { times: ever, run: (cause) => until("GET /readyz", cause) },
      "router.observePort": "a missing value counts as a port that is not attached yet",
      "router.readBanner": { run: () => act("PowerReboot", { WaitFor: "Ssh" }) },
      "router.sourceTo": "the address is missing then",
      "uploads.openUpload": { run: upload },
      "uploads.syncUpload": { run: upload },
      "uploads.removeUpload": { run: upload },
      "nameserver.publish": {
        isSilent: "the record is published again soon",
        run: async () =>
          send("POST /dns/recorda", { DomainId: await domain(), HostName: `www${names++}`, IP: "192.0.2.1" }),
      },
      "nameserver.withdraw": {
        isSilent: "the zone is withdrawn again soon",
        run: async () => send(`DELETE /dns/${(await harness.domain()).ID}`),
      },
      "nameserver.observe": { times: ever, run: () => send("GET /readyz") },
      "nameserver.loaded": "only the start of the name server calls it",
      "nameserver.saved": "only the start of the name server calls it",
      "nameserver.adopt": "only the start of the name server calls it",
      "nameserver.save": "saves for the next start: a failure is logged",
    };
    for (const [verb, one] of Object.entries(cases)) {
      if (typeof one === "string") continue;
      for (const [name, failure] of Object.entries(failures))
        test(`${verb} fails with ${name}`, async () => {
          await prepare();
          await servers.newEvents();
          const current = { verb, failure, left: one.times ?? 1, calls: 0 };
          const text = await fail(current, () => one.run(failure.cause));
          const seen = `${text}\n${JSON.stringify(await servers.newEvents())}\n${await ofServer()}`;
          assert.doesNotMatch(seen, revealing);
          assert.doesNotMatch(seen, /"code":"internal/);
          if (one.isSilent === undefined) assert.match(seen, failure.cause);
          if (problemOf(text) !== "")
            assert.match(problemOf(text), /(?:Repeat the request later|continue where it ends)\.$/);
        });
    }
  },
  {
    clock,
    wrapDriver,
    images: { checkOrigin: async () => null, ensureImported: async () => ({ hdd: 1 }) },
    machines: { offered: [tiny, debian, foreign], images: [tiny.name, foreign.name] },
  },
);
