import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { createJudge } from "../../../base/publicaddress.ts";
import { exec } from "../../exec.ts";
import { createDiskTools } from "../disk/tool.ts";
import type { CatalogueEntry } from "./catalogue.ts";
import { type DownloadOptions, downloadFile, downloadText, parseSource } from "./download.ts";
import { createImageStore, type ImageStore } from "./store.ts";

/** Files of the server; a function sends its own response. */
const served = new Map<string, Buffer | string | ((request: IncomingMessage, response: ServerResponse) => void)>();
const requested: string[] = [];
let folder = "";
let images = "";
let imports = "";
let uploads = "";
let server: Server;
let origin = "";
let store: ImageStore;
const now = 1_795_000_000_000;
const tools = createDiskTools(exec);
const allows = (address: string) => address === "127.0.0.1";

const sum = (bytes: Buffer | string, hash = "sha256") => createHash(hash).update(bytes).digest("hex");
const spec = (name: string) => ({ name, title: name, family: "Linux" as const, os: "Linux", minRam: 128, hdd: 1 });
const entry = (file: string, sums: string, hash: CatalogueEntry["hash"] = "sha256"): CatalogueEntry => ({
  ...spec("distro"),
  url: `${origin}/${file}`,
  sums,
  hash,
  guest: "cloud-init",
});
const storeWith = (...entries: CatalogueEntry[]) =>
  createImageStore({ exec, tools, images, imports, uploads, now: () => now, allows, catalogue: entries });

/** Calls `work` every millisecond while the response is writable: a client that has left must not keep the process alive. */
function whileOpen(response: ServerResponse, work: (timer: NodeJS.Timeout) => void): void {
  const timer = setInterval(() => work(timer), 1);
  response.once("close", () => clearInterval(timer));
}

/** A qcow2 with some content. */
function makeDisk(name: string, ...options: string[]): Buffer {
  const path = join(folder, name);
  const raw = join(folder, "raw");
  writeFileSync(raw, Buffer.alloc(300_000, name));
  if (options.length === 0) execFileSync("qemu-img", ["convert", "-q", "-f", "raw", "-O", "qcow2", raw, path]);
  else execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", ...options, path, "1M"]);
  return readFileSync(path);
}

function respond(request: IncomingMessage, response: ServerResponse): void {
  const path = (request.url ?? "").slice(1);
  requested.push(`${path} ${request.headers.range ?? ""}`.trim());
  const found = served.get(path);
  if (found === undefined) return void response.writeHead(404).end();
  if (typeof found === "function") return found(request, response);
  const bytes = Buffer.from(found as Buffer);
  const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
  if (request.headers.range === undefined) return void response.end(bytes);
  if (start >= bytes.length) return void response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end();
  const range = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
  response.writeHead(206, { "content-range": range }).end(bytes.subarray(start));
}

before(async () => {
  server = createServer(respond).listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "brume-store-"));
  [images, imports, uploads] = [join(folder, "images"), join(folder, "import"), join(folder, "uploads")];
  mkdirSync(imports);
  served.clear();
  requested.length = 0;
  store = storeWith();
});
afterEach(() => rmSync(folder, { recursive: true }));

const nothingIsLeft = () =>
  assert.deepEqual(
    readdirSync(images).filter((entry) => entry.endsWith(".part")),
    [],
  );
const isReason =
  (defect: string, message = /./) =>
  (error: unknown) => {
    assert.equal((error as { defect?: string }).defect, defect, String(error));
    assert.match((error as Error).message, message);
    return true;
  };

test("an official image is fetched by its published checksum, once", async () => {
  const disk = makeDisk("distro.img");
  served.set("distro.img", disk).set("SUMS", `${"0".repeat(64)}  other.img\n${sum(disk)} *distro.img\n`);
  const fetching = storeWith(entry("distro.img", "SUMS"));
  const seen: number[] = [];
  const image = await fetching.fetch("distro", { progress: (done) => seen.push(done) });
  assert.deepEqual([image.hdd, image.boot, image.made, image.version], [1, "disk", now, sum(disk).slice(0, 16)]);
  assert.equal(seen.at(-1), disk.length);
  const { images: listed, broken } = await fetching.list();
  assert.deepEqual([listed, broken], [[image], []]);
  const read = join(folder, "read");
  execFileSync("qemu-img", ["convert", "-O", "raw", join(images, "distro", image.files.disk), read]);
  assert.deepEqual(readFileSync(read).subarray(0, 300_000), Buffer.alloc(300_000, "distro.img"));
  await fetching.fetch("distro");
  assert.deepEqual(requested, ["SUMS", "distro.img", "SUMS"]);
  nothingIsLeft();
});

test("a newer version replaces it under a new file name", async () => {
  const fetching = storeWith(entry("distro.img", "SUMS"));
  const versions = [];
  for (const name of ["first", "second"]) {
    const disk = makeDisk(name);
    served.set("distro.img", disk).set("SUMS", `${sum(disk)}  distro.img\n`);
    versions.push((await fetching.fetch("distro")).files.disk);
  }
  assert.notEqual(versions[0], versions[1]);
  assert.deepEqual(
    (await fetching.list()).images.map(({ files }) => files.disk),
    [versions[1]],
  );
  assert.deepEqual(await fetching.sweep(), [join(images, "distro", versions[0] ?? "")]);
});

test("refuses a wrong and a missing checksum", async () => {
  served
    .set("distro.img", makeDisk("distro.img"))
    .set("SUMS", `${"1".repeat(64)}  distro.img\n`)
    .set("NONE", "hello\n");
  await assert.rejects(storeWith(entry("distro.img", "SUMS")).fetch("distro"), isReason("checksum", /; expected /));
  nothingIsLeft();
  await assert.rejects(storeWith(entry("distro.img", "NONE")).fetch("distro"), isReason("checksum", /no checksum/));
  await assert.rejects(storeWith(entry("distro.img", "LOST")).fetch("distro"), isReason("missing"));
  await assert.rejects(store.fetch("unheard-of"), isReason("missing"));
  assert.deepEqual((await store.list()).images, []);
});

test("resumes an interrupted download", async () => {
  const path = join(folder, "got");
  const bytes = Buffer.alloc(300_000, "abcdefg");
  let times = 0;
  served.set("broken", (request, response) => {
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const range = { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` };
    response.writeHead(start > 0 ? 206 : 200, { "content-length": bytes.length - start, ...(start > 0 && range) });
    response.write(bytes.subarray(start, start + 100_000));
    // A connection that ends before any byte of this part was written leaves nothing to resume.
    whileOpen(response, (timer) => {
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= start) return;
      clearInterval(timer);
      if (++times < 3) response.destroy();
      else response.end(bytes.subarray(start + 100_000));
    });
  });
  await downloadFile(new URL(`${origin}/broken`), path, 1e6, { allows, pause: 1 });
  assert.deepEqual(readFileSync(path), bytes);
  assert.equal(requested.length, 3);
  assert.match(requested[2] ?? "", /^broken bytes=\d{5,6}-$/);
});

test("bad responses end in an error, not in a loop", async () => {
  const path = join(folder, "got");
  const get = (name: string, most = 1e6) =>
    downloadFile(new URL(`${origin}/${name}`), path, most, { allows, pause: 1 });
  served.set("down", (_request, response) => void response.writeHead(503).end());
  await assert.rejects(get("down"), isReason("unreachable", /503/));
  assert.equal(requested.length, 5);
  served.set("circle", (_request, response) => void response.writeHead(302, { location: "/circle" }).end());
  await assert.rejects(get("circle"), isReason("unreachable", /redirects more/));
  served.set("forbidden", (_request, response) => void response.writeHead(403).end());
  await assert.rejects(get("forbidden"), isReason("unreachable", /403/));
  served.set("large", Buffer.alloc(2000));
  await assert.rejects(get("large", 1000), isReason("full", /1000 bytes .* 2000 bytes .*Delete images/));
  served.set("endless", (_request, response) =>
    whileOpen(response.writeHead(200), () => response.write(Buffer.alloc(500))),
  );
  await assert.rejects(get("endless", 5000), isReason("full"));
  await assert.rejects(
    downloadFile(new URL("http://127.0.0.1:1/x"), path, 1e6, { allows, pause: 1 }),
    isReason("unreachable"),
  );
});

test("a complete file is not fetched again, a part of another file is discarded", async () => {
  const path = join(folder, "got");
  served.set("file", "hello");
  const get = () => downloadFile(new URL(`${origin}/file`), path, 1e6, { allows, pause: 1 });
  writeFileSync(path, "hello");
  await get();
  assert.deepEqual(requested, ["file bytes=5-"]);
  writeFileSync(path, "something longer");
  await get();
  assert.equal(readFileSync(path, "utf8"), "hello");
});

test("does not connect to private addresses", async () => {
  const sha256 = "0".repeat(64);
  const closed = createImageStore({ exec, images, imports, uploads, now: () => now });
  const tries = [
    "http://127.0.0.1/x",
    "http://[::1]/x",
    "http://[::7f00:1]/x",
    "http://[4000::1]/x",
    "http://2130706433/x",
    "http://0x7f.1/x",
    "http://localhost/x",
  ];
  for (const url of [...tries, `${origin}/x`])
    await assert.rejects(closed.import(spec("own"), { url, sha256 }), isReason("address", /public internet/), url);
  for (const url of tries.slice(0, -1))
    await assert.rejects(closed.checkOrigin({ url, sha256 }), isReason("address", /public internet/), url);
  await closed.checkOrigin({ url: "http://localhost/x", sha256 });
  for (const url of ["file:///etc/passwd", "ftp://a.example/x", "https://user:word@a.example/x", "nonsense"])
    assert.throws(() => parseSource(url, {}), isReason("address"), url);
  assert.deepEqual(requested, []);
});

test("does not connect to the public addresses of the host", async () => {
  const own = createJudge([], () => ["198.41.0.4", "2001:503:ba3e::2:30"]);
  for (const host of ["198.41.0.4", "[2001:503:ba3e::2:30]", "[::ffff:198.41.0.4]"])
    assert.throws(() => parseSource(`http://${host}/x`, { allows: own }), isReason("address"), host);
  const lookup = ((_host: string, _options: object, done: (error: null, found: object[]) => void) =>
    done(null, [{ address: "198.41.0.4", family: 4 }])) as unknown as NonNullable<DownloadOptions["lookup"]>;
  const options = { allows: own, lookup, pause: 1 };
  await assert.rejects(downloadText(new URL("http://own.example/x"), options), isReason("address", /of this host/));
});

test("does not follow a redirection to a private address", async () => {
  for (const location of [
    "http://127.0.0.2/x",
    "http://[::1]/x",
    "http://10.0.0.1/x",
    "ftp://127.0.0.1/x",
    "//127.0.0.3/x",
  ]) {
    served.set("away", (_request, response) => void response.writeHead(302, { location }).end());
    const url = new URL(`${origin}/away`);
    await assert.rejects(downloadFile(url, join(folder, "got"), 1e6, { allows }), isReason("address"), location);
  }
  served
    .set("away", (_request, response) => void response.writeHead(307, { location: "/here" }).end())
    .set("here", "hello");
  await downloadFile(new URL(`${origin}/away`), join(folder, "got"), 1e6, { allows });
  assert.equal(readFileSync(join(folder, "got"), "utf8"), "hello");
});

test("an image is imported from an address or a file, qcow2 or raw", async () => {
  const disk = makeDisk("own.qcow2");
  served.set("own.qcow2", disk);
  const first = await store.import(spec("one"), { url: `${origin}/own.qcow2`, sha256: sum(disk).toUpperCase() });
  assert.equal(first.source, `${origin}/own.qcow2`);
  const raw = Buffer.alloc(3 * 2 ** 20 + 100);
  raw.set([0x55, 0xaa], 510);
  raw[450] = 0xee;
  writeFileSync(join(imports, "own, with comma.raw"), raw, { mode: 0o600 });
  const second = await store.import(spec("two"), { file: "own, with comma.raw", sha256: null });
  assert.equal(second.boot, "uefi");
  assert.deepEqual((await store.list()).images, [first, second]);
  await store.remove("one");
  await store.remove("unheard-of");
  assert.deepEqual((await store.list()).images, [second]);
  nothingIsLeft();
});

test("hostile images are refused before QEMU sees them, and nothing is left", async () => {
  makeDisk("backing.img", "-F", "raw", "-b", "/etc/hostname");
  makeDisk("datafile.img", "-o", `data_file=${join(folder, "data")}`);
  makeDisk("vast.img");
  execFileSync("qemu-img", ["resize", "-q", join(folder, "vast.img"), "5T"]);
  writeFileSync(join(folder, "page.img"), "<!DOCTYPE html><title>Not found</title>");
  writeFileSync(join(folder, "cut.img"), makeDisk("cut").subarray(0, 90_000));
  writeFileSync(join(folder, "empty.img"), "");
  const expected = {
    backing: "unsafe",
    datafile: "unsafe",
    vast: "unusable",
    page: "unusable",
    cut: "unusable",
    empty: "unusable",
  };
  for (const [name, defect] of Object.entries(expected)) {
    const bytes = readFileSync(join(folder, `${name}.img`));
    writeFileSync(join(imports, name), bytes);
    served.set(name, bytes);
    await assert.rejects(store.import(spec(name), { file: name, sha256: null }), isReason(defect), name);
    await assert.rejects(
      store.import(spec(name), { url: `${origin}/${name}`, sha256: sum(bytes) }),
      isReason(defect),
      name,
    );
  }
  assert.deepEqual(readdirSync(images), []);
});

test("only regular files of the import folder are imported", async () => {
  symlinkSync("/etc/passwd", join(imports, "link"));
  mkdirSync(join(imports, "folder"));
  execFileSync("mkfifo", [join(imports, "pipe")]);
  const refuse = async (file: string, defect: string) => {
    await assert.rejects(store.checkOrigin({ file, sha256: null }), isReason(defect), file);
    await assert.rejects(store.import(spec("own"), { file, sha256: null }), isReason(defect), file);
  };
  for (const file of ["link", "folder", "pipe"]) await refuse(file, "unsafe");
  for (const file of ["../raw", "/etc/passwd", "..", ".", "", "a\u0000b", "missing"]) await refuse(file, "missing");
  writeFileSync(join(imports, "own"), makeDisk("own"));
  await assert.rejects(store.import(spec("own"), { file: "own", sha256: "0".repeat(64) }), isReason("checksum"));
  await assert.rejects(store.import(spec("../own"), { file: "own", sha256: null }), isReason("unusable"));
});

test("concurrent requests share a transfer; it is cancelled with the last one", async () => {
  const disk = makeDisk("slow");
  let finish = () => {};
  served.set("slow", (_request, response) => {
    response.writeHead(200, { "content-length": disk.length }).write(disk.subarray(0, 1000));
    finish = () => void response.end(disk.subarray(1000));
  });
  const source = { url: `${origin}/slow`, sha256: sum(disk) };
  const began = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    return { promise, progress: () => resolve() };
  };
  const [one, two] = [new AbortController(), new AbortController()];
  const started = began();
  const first = store.import(spec("slow"), source, { signal: one.signal, progress: started.progress });
  const second = store.import(spec("slow"), source, { signal: two.signal });
  await started.promise;
  one.abort(new Error("enough"));
  await assert.rejects(first, /enough/);
  finish();
  assert.equal((await second).name, "slow");
  assert.equal(requested.length, 1);

  await store.remove("slow");
  const again = began();
  const third = store.import(spec("slow"), source, { signal: two.signal, progress: again.progress });
  await again.promise;
  two.abort(new Error("enough of it"));
  await assert.rejects(third, /enough of it/);
  assert.deepEqual(readdirSync(images), []);
});

test("reuses the draft of a killed process, or sweeps it when it is old", async () => {
  const disk = makeDisk("distro.img");
  served.set("distro.img", disk).set("SUMS", `${sum(disk)}  distro.img\n`);
  const dead = (name: string) => {
    const draft = join(images, `${name}.999999999-1.part`);
    mkdirSync(draft, { recursive: true });
    writeFileSync(join(draft, "foreign"), "half");
    const download = join(draft, `download-${sum(disk).slice(0, 32)}`);
    writeFileSync(download, disk.subarray(0, 5000));
    return { draft, download };
  };
  dead("distro");
  const fetching = storeWith(entry("distro.img", "SUMS"));
  await fetching.fetch("distro");
  assert.deepEqual(requested, ["SUMS", "distro.img bytes=5000-"]);
  nothingIsLeft();
  const [old, fresh] = [dead("old"), dead("fresh")];
  utimesSync(old.download, now / 1000 - 90_000, now / 1000 - 90_000);
  utimesSync(fresh.download, now / 1000 - 1000, now / 1000 - 1000);
  mkdirSync(join(images, "without-manifest"));
  assert.deepEqual([...(await fetching.sweep())].sort(), [old.draft, join(images, "without-manifest")].sort());
});

test("adopts images of another folder if their version differs", async () => {
  const other = createImageStore({ exec, tools, images: join(folder, "other"), imports, uploads, now: () => now });
  writeFileSync(join(imports, "own"), makeDisk("own"));
  const image = await other.import(spec("shared"), { file: "own", sha256: null });
  assert.deepEqual(await store.adopt(join(folder, "other")), [image]);
  assert.deepEqual(await store.adopt(join(folder, "other")), []);
  assert.deepEqual(await store.adopt(join(folder, "nowhere")), []);
  await other.remove("shared");
  assert.deepEqual((await store.list()).images, [image]);
  nothingIsLeft();
});
