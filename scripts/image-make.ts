/** `npm run image -- NAME`: builds, downloads or imports a guest image. `scripts/image` calls it. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadSettings } from "../service/src/config.ts";
import { exec } from "../service/src/drivers/exec.ts";
import { openDraft, placeImage, sweepImages } from "../service/src/drivers/machine/image/folder.ts";
import type { GuestImage } from "../service/src/drivers/machine/image/manifest.ts";
import { createImageStore } from "../service/src/drivers/machine/image/store.ts";
import type { Family } from "../service/src/drivers/machine/interface.ts";

const usage = `npm run image -- NAME [--images FOLDER]
  (nothing)        lists installed and available images
  tiny             builds the small Linux; the set-up runs this; --again uses newer packages
  debian-12, -13   builds Debian from the package source of the host, as root; --fetch downloads the official image
  NAME             downloads an official image of the catalogue
  FILE or URL      imports a qcow2 or raw disk: --name NAME [--sha256 SUM] [--title TEXT] [--os TEXT]
                   [--family Linux|Windows|Bsd] [--min-ram MB] [--hdd GB]
  --images         the folder of images; default: images in BRUME_DATA`;

/** Folder of the small Linux for all data folders. The service copies it when it starts. */
const shared = resolve(".engines/images");
const here = dirname(import.meta.filename);

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
const show = (line: string): void => void (process.stderr.isTTY && process.stderr.write(`\r\x1b[K${line}`));

const accepted = {
  allowPositionals: true,
  options: {
    recipe: { type: "string" },
    again: { type: "boolean" },
    help: { type: "boolean" },
    fetch: { type: "boolean" },
    images: { type: "string" },
    name: { type: "string" },
    sha256: { type: "string" },
    title: { type: "string" },
    os: { type: "string" },
    family: { type: "string" },
    "min-ram": { type: "string" },
    hdd: { type: "string" },
  },
} as const;

function readArguments() {
  try {
    return parseArgs(accepted);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${usage}\n`);
    return process.exit(2);
  }
}

// The reader of a pipe may close it early.
process.stdout.on("error", () => process.exit());
const { values, positionals } = readArguments();
const images =
  values.images === undefined ? join(loadSettings(process.env).dataFolder, "images") : resolve(values.images);
const interrupt = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => interrupt.abort(new Error("interrupted")));
const work = {
  signal: interrupt.signal,
  progress: (done: number, total: number | null) =>
    show(`${megabytes(done)}${total === null ? "" : ` of ${megabytes(total)}`}`),
};

const storeFor = (imports: string) => createImageStore({ exec, images, imports, uploads: imports, now: Date.now });

/** Runs a build script in a draft folder, and installs its files as an image in the folder `into`. */
async function build(
  into: string,
  about: Omit<GuestImage, "files" | "format" | "made" | "version">,
  argv: readonly string[],
): Promise<GuestImage> {
  const draft = await openDraft(exec, into, about.name);
  try {
    const [script = "", ...rest] = argv;
    execFileSync("sh", [join(here, script), draft, ...rest], { stdio: ["ignore", "inherit", "inherit"] });
    const sum = createHash("sha256")
      .update(readFileSync(join(draft, "disk.qcow2")))
      .digest("hex");
    const version =
      values.recipe !== undefined && about.boot === "kernel" ? `${values.recipe}-${sum.slice(0, 8)}` : sum.slice(0, 16);
    const name = (file: string) => {
      const [stem, end] = file.split(".");
      const named = `${stem}-${version}${end === undefined ? "" : `.${end}`}`;
      renameSync(join(draft, file), join(draft, named));
      return named;
    };
    const files = {
      disk: name("disk.qcow2"),
      ...(about.boot === "kernel" && { kernel: name("vmlinuz"), initrd: name("initrd.gz") }),
    };
    const image: GuestImage = { ...about, format: "qcow2", files, version, made: Date.now() };
    await placeImage(into, draft, image);
    await sweepImages(exec, into, Date.now());
    return image;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

const tiny = () =>
  build(
    shared,
    {
      name: "brume-tiny",
      title: "Brume Tiny Linux",
      family: "Linux",
      os: "Linux",
      minRam: 128,
      hdd: 1,
      boot: "kernel",
      guest: "tiny",
      source: "built here",
    },
    ["image-tiny"],
  );

const debian = (number: "12" | "13") => {
  const suite = number === "12" ? "bookworm" : "trixie";
  const title = `Debian ${number} (${suite})`;
  return build(
    images,
    {
      name: `debian-${number}`,
      title,
      family: "Linux",
      os: "Debian",
      minRam: 512,
      hdd: 2,
      boot: "disk",
      guest: "cloud-init",
      source: "built here",
    },
    ["image-debian", suite],
  );
};

async function importImage(origin: string): Promise<GuestImage> {
  const { name } = values;
  if (name === undefined) throw new Error("an import needs a --name");
  const isUrl = /^https?:\/\//.test(origin);
  if (isUrl && values.sha256 === undefined) throw new Error("an import from a URL needs --sha256");
  const about = {
    name,
    title: values.title ?? name,
    family: (values.family ?? "Linux") as Family,
    os: values.os ?? values.family ?? "Linux",
    minRam: Number(values["min-ram"] ?? 512),
    hdd: Number(values.hdd ?? 1),
  };
  const from = isUrl
    ? { url: origin, sha256: values.sha256 ?? "" }
    : { file: basename(origin), sha256: values.sha256 ?? null };
  return storeFor(dirname(resolve(origin))).import(about, from, work);
}

async function list(): Promise<void> {
  const store = storeFor("");
  const { images: present, broken } = await store.list();
  for (const image of present) print(`${image.name.padEnd(16)} installed  ${image.title}, version ${image.version}`);
  for (const { name, reason } of broken) print(`${name.padEnd(16)} broken     ${reason}`);
  for (const { name, title, url } of store.catalogue.filter(
    ({ name }) => !present.some((image) => image.name === name),
  ))
    print(`${name.padEnd(16)} available  ${title}, ${new URL(url).host}`);
}

function make(what: string): Promise<GuestImage> {
  if (what === "tiny") return tiny();
  if ((what === "debian-12" || what === "debian-13") && !values.fetch)
    return debian(what === "debian-12" ? "12" : "13");
  if (storeFor("").catalogue.some(({ name }) => name === what)) return storeFor("").fetch(what, work);
  if (/^https?:\/\//.test(what) || existsSync(what)) return importImage(what);
  throw new Error(`"${what}" is not an image, a file or a URL\n${usage}`);
}

const [what] = positionals;
const start = Date.now();
try {
  if (values.help) print(usage);
  else if (what === undefined) await list();
  else {
    const { name, version } = await make(what);
    show("");
    print(`Image ${name}, version ${version}, is installed after ${((Date.now() - start) / 1000).toFixed(1)} s.`);
    print("A running service offers it after its next start.");
  }
} catch (error) {
  show("");
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
