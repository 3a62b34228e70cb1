/** The renewer of the API's certificate with a simulated clock and authority: when it orders, what it stores, and what a crash leaves. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { silentLog } from "../../service/src/base/log.ts";
import type { Authority, Challenge, KeyPair, Method } from "../../service/src/drivers/authority/interface.ts";
import { createAuthority } from "../../service/src/drivers/authority/thread.ts";
import { type Disk, nodeDisk, openCertificateFiles } from "../../service/src/tls/files.ts";
import { openRenewer, type Renewer } from "../../service/src/tls/renewer.ts";

const minute = 60_000;
const day = 1440 * minute;
const wanted = { names: ["cloud.example.com"], contact: null, directory: "https://authority.example/dir" };
const thread = createAuthority();

let folder = "";
let temporary: KeyPair;
/** Valid for 90 and for 91 days. */
let pairs: readonly KeyPair[] = [];
let now = Date.now();
/** What the authority does with the next orders; a text: it fails with this reason. */
let outcomes: (KeyPair | string)[] = [];
/** Account keys that the authority has seen. */
let accounts: string[] = [];
let orders: { readonly method: Method; readonly at: number }[] = [];
let hosted = true;
let reports: string[] = [];
let storesReports = true;
let records: string[] = [];
/** What creating a challenge waits for. */
let presenting: (signal: AbortSignal) => Promise<void> = async () => {};
/** Whether an order ends at its signal while its challenges are created. */
let endsAtSignal = false;
let renewer: Renewer | null = null;

const authority: Authority = {
  selfSign: async () => temporary,
  createAccountKey: async () =>
    `-----BEGIN PRIVATE KEY-----\n${randomBytes(30).toString("base64")}\n-----END PRIVATE KEY-----\n`,
  async order({ method, accountKey }, present, signal) {
    orders.push({ method, at: now });
    accounts.push(accountKey);
    const presented = present([{ method, name: "cloud.example.com", token: "t", value: "v" }]);
    if (endsAtSignal) await Promise.race([presented, once(signal, "abort")]);
    else await presented;
    const outcome = outcomes.shift() ?? "no outcome";
    if (outcome === "hang")
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
    if (typeof outcome === "string") throw new Error(outcome);
    return outcome;
  },
};

async function open(tokens: Map<string, string> | null = null, names = wanted.names, disk?: Disk): Promise<Renewer> {
  renewer = await openRenewer({
    wanted: { ...wanted, names },
    authority,
    files: openCertificateFiles(folder, disk),
    clock: { now: () => now },
    log: silentLog,
    random: () => 0,
    period: 1,
  });
  renewer.run({
    tokens,
    records: {
      isHosted: async () => hosted,
      async present(challenges: readonly Challenge[], signal) {
        await presenting(signal);
        records.push(...challenges.map(({ value }) => value));
      },
      remove: async () => void records.splice(0),
    },
    async report(type) {
      reports.push(type);
      if (!storesReports) throw new Error("the database is full");
    },
  });
  return renewer;
}
const close = async (): Promise<void> => {
  await renewer?.close();
  renewer = null;
};

/** Resolves when the condition holds; the guard of the test process ends a wait that never does. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}
/** Waits for a number of checks, in which nothing may happen. */
const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

before(async () => {
  const made = [90, 91, 365].map((days) => thread.selfSign(wanted.names, days));
  const all = (await Promise.all(made)) as [KeyPair, KeyPair, KeyPair];
  [pairs, temporary] = [all.slice(0, 2), all[2]];
});
beforeEach(async () => {
  await close();
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
  folder = mkdtempSync(join(tmpdir(), "brume-tls-"));
  [now, outcomes, orders, accounts, hosted, reports, records] = [Date.now(), [], [], [], true, [], []];
  storesReports = true;
});
after(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});

test("the first certificate replaces the temporary one, is stored for its owner only, and is renewed in time", async () => {
  const [first, second] = pairs as [KeyPair, KeyPair];
  outcomes = [first, second];
  const { served } = await open();
  assert.match(served.check(now).Detail, /^temporary/);
  await until(() => served.pair() === first);
  assert.deepEqual([served.check(now).Ok, records, reports], [true, [], ["certificate.changed"]]);
  assert.match(served.check(now).Detail, /^cloud\.example\.com, valid until \d{4}-\d\d-\d\d; renewal from/);
  for (const name of readdirSync(folder)) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);

  // A restart serves it at once, and orders nothing.
  await close();
  assert.equal((await open()).served.pair().key, first.key);
  now += 59 * day;
  await rest();
  assert.equal(orders.length, 1);
  now += 2 * day;
  await until(() => renewer?.served.pair() === second);
});

test("a certificate that is due at once, because a clock is wrong, is used and ordered again with pauses", async () => {
  const [first, second] = pairs as [KeyPair, KeyPair];
  outcomes = [first, second, first, second];
  now += 70 * day;
  const { served } = await open();
  await until(() => served.pair() === first);
  await until(() => /failed once: the new certificate is due for renewal already/.test(served.check(now).Detail));
  await rest();
  assert.deepEqual([orders.length, reports], [1, ["certificate.failed"]], "the authority limits the orders for a name");
  now += minute;
  await until(() => served.pair() === second);
  await until(() => /failed 2 times/.test(served.check(now).Detail));
  await rest();
  assert.equal(orders.length, 2);
});

test("a failed order is repeated with pauses, also after a restart, with the other method if there is one", async () => {
  outcomes = ["NXDOMAIN", "connection refused", "still wrong", pairs[0] as KeyPair];
  const tokens = new Map<string, string>();
  await open(tokens);
  await until(() => /failed once: NXDOMAIN; next attempt/.test(renewer?.served.check(now).Detail ?? ""));
  await rest();
  assert.deepEqual([orders.length, reports, tokens.size], [1, ["certificate.failed"], 0]);
  now += minute;
  await until(() => orders.length === 2);
  await until(() => /failed 2 times: connection refused/.test(renewer?.served.check(now).Detail ?? ""));
  await close();
  now += 14 * minute;
  await open(tokens);
  await rest();
  assert.equal(orders.length, 2, "the restart did not shorten the pause");
  now += 2 * minute;
  await until(() => orders.length === 3);
  await until(() => /failed 3 times/.test(renewer?.served.check(now).Detail ?? ""));
  // After a long pause a restart orders sooner than without.
  await close();
  now += 16 * minute;
  await open(tokens);
  await until(() => renewer?.served.pair() === pairs[0]);
  assert.deepEqual(
    orders.map(({ method }) => method),
    ["dns-01", "http-01", "dns-01", "http-01"],
  );
  assert.deepEqual(reports, ["certificate.failed", "certificate.changed"]);
});

test("a failed renewal keeps the served certificate", async () => {
  outcomes = [pairs[0] as KeyPair, "the authority is away"];
  await open();
  await until(() => renewer?.served.pair() === pairs[0]);
  now += 61 * day;
  await until(() => /failed once: the authority is away/.test(renewer?.served.check(now).Detail ?? ""));
  assert.deepEqual([renewer?.served.pair(), renewer?.served.check(now).Ok], [pairs[0], true]);
  now += 30 * day;
  assert.equal(renewer?.served.check(now).Ok, false, "it has expired");
});

test("a report that cannot be stored neither fails nor repeats an order", async () => {
  storesReports = false;
  outcomes = ["the authority is away", pairs[0] as KeyPair];
  await open();
  await until(() => reports.length === 1);
  now += minute;
  await until(() => reports.length === 2);
  await rest();
  assert.deepEqual([reports, orders.length], [["certificate.failed", "certificate.changed"], 2]);
  assert.deepEqual([renewer?.served.pair(), renewer?.served.check(now).Ok], [pairs[0], true]);
  assert.doesNotMatch(renewer?.served.check(now).Detail ?? "", /failed/);
  assert.ok(!readdirSync(folder).includes("attempt.json"));
});

test("without a way to prove the name nothing is ordered, and creating the domain is enough", async () => {
  hosted = false;
  outcomes = [pairs[0] as KeyPair];
  await open();
  await until(() =>
    /the domain is not on this service, and BRUME_TLS_REDIRECT/.test(renewer?.served.check(now).Detail ?? ""),
  );
  assert.equal(orders.length, 0);
  hosted = true;
  await until(() => renewer?.served.pair() === pairs[0]);
});

test("other names are ordered at once, and the present certificate is served meanwhile", async () => {
  outcomes = [pairs[0] as KeyPair, "hang"];
  await open();
  await until(() => renewer?.served.pair() === pairs[0]);
  await close();
  await open(null, ["cloud.example.com", "other.example.com"]);
  await until(() => orders.length === 2);
  assert.equal(renewer?.served.pair().key, pairs[0]?.key);
});

test("a service that ends during an order leaves no challenge, and waits before the next order", async () => {
  outcomes = ["hang", pairs[0] as KeyPair];
  await open();
  await until(() => records.length === 1);
  await close();
  assert.equal(records.length, 0);
  // As kill -9 leaves it: the challenge is there, and a file was being written.
  records.push("left");
  writeFileSync(join(folder, "certificate.pem.new"), "-----BEGIN CERT");
  await open();
  await rest();
  assert.equal(orders.length, 1);
  now += minute;
  await until(() => renewer?.served.pair() === pairs[0]);
  assert.deepEqual(records, []);
});

test("a challenge that is still being created when its order ends is removed too", async () => {
  outcomes = ["unused"];
  presenting = async (signal) => {
    await once(signal, "abort");
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    records.push("late");
  };
  endsAtSignal = true;
  try {
    await open();
    await until(() => orders.length === 1);
    await close();
    for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(records, []);
  } finally {
    presenting = async () => {};
    endsAtSignal = false;
  }
});

test("a damaged file is no certificate, and the account key is kept", async () => {
  outcomes = [pairs[0] as KeyPair, pairs[1] as KeyPair];
  await open();
  await until(() => renewer?.served.pair() === pairs[0]);
  const account = (): string[] => readdirSync(folder).filter((name) => name.startsWith("account-"));
  const [name = ""] = account();
  const key = readFileSync(join(folder, name), "utf8");
  await close();
  const file = join(folder, "certificate.pem");
  writeFileSync(file, readFileSync(file, "utf8").slice(0, -400));
  await open();
  await until(() => renewer?.served.pair() === pairs[1]);
  assert.deepEqual(account(), [name]);
  assert.equal(readFileSync(join(folder, name), "utf8"), key);
});

/** The disk of a process that is killed at its operation `last`: a file that is being written gets the half, and nothing happens later. */
function killedDisk(last: number): { readonly disk: Disk; isDead(): boolean } {
  let left = last;
  const dead = new Promise<never>(() => {});
  const step = <A extends readonly unknown[], R>(work: (...args: A) => Promise<R>, half?: (...args: A) => Promise<R>) =>
    ((...args: A) => {
      left--;
      if (left >= 0) return work(...args);
      return left === -1 && half !== undefined ? half(...args).then(() => dead) : dead;
    }) as typeof work;
  const disk: Disk = {
    mkdir: step(nodeDisk.mkdir),
    remove: step(nodeDisk.remove),
    create: step(nodeDisk.create, (path, text) => nodeDisk.create(path, text.slice(0, text.length / 2))),
    rename: step(nodeDisk.rename),
    sync: step(nodeDisk.sync),
  };
  return { disk, isDead: () => left < 0 };
}

test("a kill at any step of writing leaves no half file, and the next process completes with the same account", async () => {
  const [first, second] = pairs as [KeyPair, KeyPair];
  let kills = 0;
  for (let last = 0; ; last++) {
    rmSync(folder, { recursive: true, force: true });
    folder = mkdtempSync(join(tmpdir(), "brume-tls-"));
    [now, outcomes, accounts, records] = [Date.now(), [first, second], [], []];
    const { disk, isDead } = killedDisk(last);
    const killed = await open(null, wanted.names, disk);
    // The first certificate and a renewal, each with all its files.
    await until(() => isDead() || killed.served.pair() === first);
    if (!isDead()) now += 61 * day;
    await until(() => isDead() || killed.served.pair() === second);
    // A removed attempt is the last step. It may come later than this, and a killed process never ends.
    await rest();
    let hasEnded = false;
    if (!isDead()) void close().then(() => (hasEnded = true));
    await until(() => hasEnded || isDead());
    if (!isDead()) break;
    kills++;
    // Nothing ends a killed process in order.
    renewer = null;
    const files = openCertificateFiles(folder);
    const stored = await files.readPair();
    if (stored !== null)
      assert.ok(
        [first, second].some(({ key }) => key === stored.pair.key),
        `after ${last} steps`,
      );
    outcomes = [second, second];
    const { served } = await open();
    // The pause that a start waits at most.
    now += 15 * minute;
    await until(() => served.pair().key === second.key || (served.pair().key === first.key && served.check(now).Ok));
    await rest();
    assert.equal(new Set(accounts).size <= 1, true, `after ${last} steps the authority has seen two accounts`);
    for (const name of readdirSync(folder)) {
      assert.match(name, /^(certificate\.pem|account-[0-9a-f]{16}\.pem|attempt\.json)(\.new)?$/);
      // The process may still rename or remove a new file.
      const found = statSync(join(folder, name), { throwIfNoEntry: false });
      if (found !== undefined) assert.equal(found.mode & 0o777, 0o600, name);
    }
    await close();
  }
  assert.ok(kills >= 20, `${kills} kills`);
});
