/** Output of a start: example lines that work as printed, and the first token only once and only on a terminal. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { serviceProgram } from "../support/program.ts";

const main = serviceProgram();
const root = resolve(import.meta.dirname, "../..");
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

const running = new Set<ChildProcess>();
// A failed test leaves its service. Without `script`, its terminal ends, and with it the service.
after(() => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts Brume; resolves at the last line of the introduction. `end` resolves to all output. */
async function start(folder: string, options: { terminal?: boolean; token?: string } = {}) {
  const env: NodeJS.ProcessEnv = {
    PATH: process.env["PATH"],
    ...(process.env["NODE_COMPILE_CACHE"] !== undefined && { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] }),
    BRUME_CONFIG: "",
    BRUME_DATA: folder,
    BRUME_LISTEN: "127.0.0.1:0",
    BRUME_DNS_LISTEN: "127.0.0.1:0",
    BRUME_DNS_RESOLVERS: ",",
    BRUME_SIMULATE: "1",
    ...(options.token !== undefined && { BRUME_TOKEN: options.token }),
  };
  const command = `exec ${quoted(process.execPath)} ${quoted(main)}`;
  // script(1) runs the program on a terminal and copies its output.
  const argv = options.terminal === true ? ["script", "-qec", command, "/dev/null"] : ["sh", "-c", command];
  const child: ChildProcess = spawn(argv[0] as string, argv.slice(1), { env, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let printed = "";
  const ready = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
        if (printed.includes("npm run down") && printed.includes('"msg":"ready"')) resolve();
      });
    child.once("exit", () => reject(new Error(`it ended: ${printed}`)));
  });
  await ready;
  return {
    env,
    printed: () => printed,
    async end() {
      const [, pid] = /"pid":(\d+),"msg":"ready"/.exec(printed) ?? [];
      // The process 0 would be the group of this process.
      assert.ok(pid, printed);
      const ended = once(child, "close");
      process.kill(Number(pid), "SIGTERM");
      await ended;
      return printed;
    },
  };
}

const tokenIn = (folder: string) => readFileSync(join(folder, "token"), "utf8").trim();

/** Runs the printed lines that set variables, and the one about domains, in a new shell. Returns what they print. */
function paste(printed: string, env: NodeJS.ProcessEnv): string {
  const lines = printed.split(/\r?\n/).filter((each) => /^ {2}(export |brume domain )/.test(each));
  const script = [`brume() { ${quoted(process.execPath)} ${quoted(join(root, "cli/src/main.ts"))} "$@"; }`, ...lines];
  const known = { PATH: env["PATH"], ...(env["BRUME_TOKEN"] !== undefined && { BRUME_TOKEN: env["BRUME_TOKEN"] }) };
  const { stdout, stderr } = spawnSync("sh", ["-c", script.join("\n")], {
    encoding: "utf8",
    env: known,
    cwd: tmpdir(),
  });
  return stdout + stderr;
}

test("with BRUME_REQUIRE_ENGINES the service does not start with simulated engines", () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-start-"));
  const env = {
    PATH: process.env["PATH"],
    BRUME_CONFIG: "",
    BRUME_DATA: folder,
    BRUME_SIMULATE: "1",
    BRUME_REQUIRE_ENGINES: "1",
  };
  try {
    const { status, stderr } = spawnSync(process.execPath, [main], { encoding: "utf8", env });
    assert.equal(status, 1);
    assert.match(stderr, /^Brume did not start: BRUME_REQUIRE_ENGINES is set, and engines would be simulated: /m);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a stack trace of the bundled program names the sources", () => {
  const hook = 'process.getuid = () => { throw new TypeError("broken"); };';
  const { stderr } = spawnSync(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, main],
    {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], BRUME_CONFIG: "" },
    },
  );
  assert.match(stderr, /^Brume did not start: TypeError: broken\n/);
  const [, line] =
    /\n {4}at start \(file:\/\/\S*\/service\/src\/main\.ts:(\d+):\d+\)\n/.exec(stderr) ?? assert.fail(stderr);
  const source = readFileSync(join(root, "service/src/main.ts"), "utf8").split("\n");
  assert.match(source[Number(line) - 1] ?? "", /process\.getuid\?\.\(\)/);
});

test("the bundled program does not import node:http as an ES module, which loads a second client", () => {
  const folder = dirname(main);
  const files = readdirSync(folder).filter((file) => file.endsWith(".js"));
  const importing = files.filter((file) => /from ?"(node:)?http"/.test(readFileSync(join(folder, file), "utf8")));
  assert.deepEqual(importing, []);
});

test("without a terminal the token is not printed, and the printed lines work", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "brume-start-")), "it's data");
  try {
    for (const place of ["created now, in ", "in "]) {
      const run = await start(folder);
      const answer = paste(run.printed(), run.env);
      const printed = await run.end();
      assert.ok(!printed.includes(tokenIn(folder)), printed);
      assert.ok(printed.includes(`Token  ${place}${join(folder, "token")}\n`), printed);
      assert.match(answer, /example\.com +Active/);
    }
  } finally {
    rmSync(join(folder, ".."), { recursive: true, force: true });
  }
});

test("on a terminal only the start that creates the token prints it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-start-"));
  try {
    const first = await (await start(folder, { terminal: true })).end();
    assert.equal(first.split(tokenIn(folder)).length - 1, 1, first);
    const second = await (await start(folder, { terminal: true })).end();
    assert.ok(!second.includes(tokenIn(folder)), second);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a token from BRUME_TOKEN is never printed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-start-"));
  const token = "5a".repeat(32);
  try {
    const run = await start(folder, { terminal: true, token });
    const answer = paste(run.printed(), run.env);
    const printed = await run.end();
    assert.ok(!printed.includes(token), printed);
    assert.match(printed, /Token {2}the value of BRUME_TOKEN/);
    assert.match(answer, /example\.com +Active/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
