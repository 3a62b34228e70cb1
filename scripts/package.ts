/**
 * `npm run package`: builds the Debian package from this clone: service, console, command line with manual and completion, systemd units, Node and
 * the small Linux for guests. Prints the path of the package.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

const usage = `npm run package [-- --out FOLDER] [--version VERSION]
  --out      folder of the package; default: dist
  --version  version of the package; default: that of package.json`;

const project = resolve(import.meta.dirname, "..");
/** Where the files of the project are on the host. */
const library = "usr/lib/brume";
/** Scripts for operators, with the modules that they import, and the list of needed packages for `brume doctor`. */
const scripts = [
  "setup",
  "backup-disks.ts",
  "backup.ts",
  "compact.ts",
  "database.ts",
  "down.ts",
  "export.ts",
  "import.ts",
];
/** Packages that every installation needs, for DNS only too. Those of the engines are recommended. */
const needed = ["libc6", "passwd", "util-linux", "init-system-helpers"];

const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
const isSource = (path: string): boolean => !path.endsWith(".test.ts") && basename(path) !== "node_modules";

/** Copies a file or folder of the project. */
function take(root: string, path: string, to = join(library, path)): void {
  const target = join(root, to);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(join(project, path), target, { recursive: true, filter: isSource, verbatimSymlinks: true });
}

function write(root: string, path: string, content: string | Buffer, mode = 0o644): void {
  const target = join(root, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, content, { mode });
  chmodSync(target, mode);
}

const compress = (content: string | Buffer): Buffer => gzipSync(content, { level: 9 });

/** Copies the npm packages that the service needs, and Node. */
function takePackages(root: string): void {
  const listed = run("npm", "ls", "--loglevel=error", "--workspace=service", "--omit=dev", "--all", "--parseable");
  for (const folder of listed.split("\n").slice(1)) {
    const path = relative(project, folder);
    const real = relative(project, realpathSync(folder));
    if (real === path) {
      cpSync(folder, join(root, library, path), {
        recursive: true,
        filter: (from) => from === folder || (isOutside(folder, from) && !neverLoaded.test(from)),
      });
      continue;
    }
    const link = join(root, library, path);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(relative(dirname(path), real), link);
  }
  const node = join(root, library, "bin/node");
  mkdirSync(dirname(node), { recursive: true });
  cpSync(realpathSync(process.execPath), node);
  chmodSync(node, 0o755);
}

/** Files of npm packages that Node never loads: types, source positions, and documents without licences. */
const neverLoaded = /\.d\.[cm]?ts$|\.map$|\/(?!licen[cs]e)[^/]*\.(md|markdown)$|\/(tests?|benchmarks?)$/i;

/** A package's own dependencies are in the list themselves. */
const isOutside = (folder: string, from: string): boolean => from !== join(folder, "node_modules");

function takeCommandLine(root: string): void {
  take(root, "packaging/brume", "usr/bin/brume");
  take(root, "packaging/brume-admin", "usr/sbin/brume-admin");
  for (const path of ["usr/bin/brume", "usr/sbin/brume-admin"]) chmodSync(join(root, path), 0o755);
  write(root, "usr/share/man/man1/brume.1.gz", compress(readFileSync(join(project, "cli/dist/brume.1"))));
  const completions = {
    bash: "usr/share/bash-completion/completions/brume",
    zsh: "usr/share/zsh/vendor-completions/_brume",
    fish: "usr/share/fish/vendor_completions.d/brume.fish",
  };
  for (const [shell, path] of Object.entries(completions))
    write(root, path, `${run(process.execPath, "cli/bin/brume.js", "completion", shell)}\n`);
}

function takeDocuments(root: string): void {
  const folder = "usr/share/doc/brume";
  write(root, `${folder}/copyright`, readFileSync(join(project, "LICENSE")));
  write(root, `${folder}/changelog.gz`, compress(readFileSync(join(project, "CHANGELOG.md"))));
  // The service renders the documents at `/docs`. Systems may leave out the folder of documents, so they are links.
  for (const path of ["docs", "examples", "CHANGELOG.md", "CONTRIBUTING.md"]) take(root, path);
  for (const name of readdirSync(join(project, "docs")).filter((each) => each.endsWith(".md")))
    symlinkSync(`../../../lib/brume/docs/${name}`, join(root, folder, name));
  for (const name of ["how-to", "tutorials"]) symlinkSync(`../../../lib/brume/docs/${name}`, join(root, folder, name));
  symlinkSync("../../../lib/brume/examples", join(root, folder, "examples"));
}

/** Writes the description of the package and the scripts that dpkg runs. */
function writeControl(root: string, version: string): void {
  const size = run("du", "-sk", root).split("\t")[0] ?? "0";
  const recommended = [...run("sh", "scripts/setup", "engines").split(/\s+/), "ca-certificates"];
  const control = [
    "Package: brume",
    `Version: ${version}`,
    `Architecture: ${run("dpkg", "--print-architecture")}`,
    "Maintainer: Brume <brume@localhost>",
    `Installed-Size: ${size}`,
    `Depends: ${needed.join(", ")}`,
    `Recommends: ${recommended.join(", ")}`,
    "Section: admin",
    "Priority: optional",
    "Description: small private cloud on one host",
    " Virtual servers, authoritative DNS and public networks with firewall and VPN",
    " behind one HTTP API, with a command line.",
    "",
  ];
  write(root, "DEBIAN/control", control.join("\n"));
  write(root, "DEBIAN/conffiles", "/etc/brume/brume.toml\n");
  for (const name of readdirSync(join(project, "packaging/debian")))
    write(root, `DEBIAN/${name}`, readFileSync(join(project, "packaging/debian", name)), 0o755);
}

function build(out: string, version: string): string {
  const root = mkdtempSync(join(tmpdir(), "brume-package-"));
  try {
    chmodSync(root, 0o755);
    for (const path of [
      "package.json",
      "api/package.json",
      "api/src",
      "service/package.json",
      "service/src",
      "service/dist",
    ])
      take(root, path);
    for (const path of [
      "cli/package.json",
      "cli/bin",
      "cli/dist",
      // The backup of disks sends requests with it.
      "cli/src/request.ts",
      "console/dist",
      ...scripts.map((name) => `scripts/${name}`),
    ])
      take(root, path);
    const image = ".engines/images/brume-tiny";
    if (existsSync(join(project, image))) take(root, image);
    takePackages(root);
    takeCommandLine(root);
    takeDocuments(root);
    for (const unit of ["brume.service", "brume-dns.service"]) {
      take(root, `packaging/${unit}`, `lib/systemd/system/${unit}`);
      // `brume init` derives units from them.
      take(root, `packaging/${unit}`);
    }
    write(root, "etc/brume/brume.toml", readFileSync(join(project, "packaging/brume.toml")), 0o640);
    run("chmod", "-R", "u=rwX,go=rX", join(root, "usr"), join(root, "lib"));
    writeControl(root, version);
    const file = join(out, `brume_${version}_${run("dpkg", "--print-architecture")}.deb`);
    mkdirSync(out, { recursive: true });
    run("dpkg-deb", "--root-owner-group", "-Zzstd", "-z3", "--build", root, file);
    return file;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: { out: { type: "string" }, version: { type: "string" }, help: { type: "boolean" } },
});
if (values.help === true) {
  process.stdout.write(`${usage}\n`);
} else {
  const { version } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { version: string };
  process.stdout.write(`${build(resolve(values.out ?? "dist"), values.version ?? version)}\n`);
}
