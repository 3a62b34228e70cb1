/** Commands on an installation with TLS: the local one has a certificate that no authority confirms, another one is behind a proxy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createRequest } from "../../cli/src/request.ts";
import { type CommandLine, createCommandLine } from "../support/commandline.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const read = (name: string) => readFileSync(new URL(`../chaos/tls/${name}`, import.meta.url), "utf8");
const tls = { certificate: read("certificate.pem"), key: read("key.pem") };
const trusting = createRequest(tls.certificate);

let brume: TestService;
let cli: CommandLine;
let data = "";
before(async () => {
  brume = await createTestService("sqlite", { tls });
  cli = createCommandLine(brume.url, brume.token);
  data = join(cli.home, "data");
  mkdirSync(data);
  for (const [name, text] of [
    ["token", brume.token],
    ["url", brume.url],
    ["certificate.pem", tls.certificate],
  ] as const)
    writeFileSync(join(data, name), `${text}\n`);
  const { code, err } = await cli("server create web-1 --ram 256", { env: local() });
  assert.equal(code, 0, err);
});
after(async () => {
  cli.close();
  await brume.close();
});

/** The environment of a command for the local installation. */
const local = () => ({ BRUME_URL: "", BRUME_TOKEN: "", BRUME_DATA: data });

/** Sends the requests to an address to the service of the test, as a proxy does. */
const proxied =
  (address: string): typeof fetch =>
  (input, init) =>
    trusting(new Request(input).url.replace(address, brume.url), init);

test("the console of the local installation trusts its certificate", async () => {
  let type: (text: string) => void = () => {};
  const onKeys = (keys: (text: string) => void) => {
    type = keys;
  };
  const onOut = (text: string) => {
    if (text.includes("login: ")) type("\u001D");
  };
  const { code, err } = await cli("console web-1", { terminal: 80, input: [], env: local(), onKeys, onOut });
  assert.equal(code, 0, err);
});

test("the console is reached at the scheme, name and path of the context", async () => {
  const url = "https://brume.example/base";
  const { out, err } = await cli("console web-1 --vnc", { env: { BRUME_URL: `${url}/` }, fetch: proxied(url) });
  assert.match(out, /^wss:\/\/brume\.example\/base\/console\/[\w-]+\n$/, err);
});

test("an adapter of the local installation serves requests with a token as password", async () => {
  const stop = new AbortController();
  const listening = Promise.withResolvers<string>();
  const running = cli("adapter external-dns --listen 127.0.0.1:0", {
    env: local(),
    signal: stop.signal,
    onErr: (text) => {
      const [, url] = /Listening on (\S+)/.exec(text) ?? [];
      if (url !== undefined) listening.resolve(url);
    },
  });
  const url = await Promise.race([listening.promise, running.then(({ err }) => assert.fail(err))]);
  try {
    for (const [password, status] of [
      [brume.token, 200],
      ["0".repeat(64), 401],
    ] as const) {
      const response = await fetch(url, { headers: { Authorization: `Basic ${btoa(`any:${password}`)}` } });
      assert.equal(response.status, status, await response.text());
    }
  } finally {
    stop.abort();
    await running;
  }
});

/** Runs doctor and returns the states of its findings by name. */
async function states(situation: Parameters<CommandLine>[1]): Promise<Readonly<Record<string, string>>> {
  const { out } = await cli("doctor -o json", { capture: () => "", ...situation });
  const findings = JSON.parse(out) as { Check: string; State: string }[];
  return Object.fromEntries(findings.map(({ Check, State }) => [Check, State]));
}

test("doctor checks the certificate at an IPv6 address", async () => {
  const sockets = new Set<Socket>();
  const forward = createServer((socket) => {
    const onward = connect(Number(new URL(brume.url).port), "127.0.0.1");
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy()).pipe(to);
    }
  }).listen(0, "::1");
  await once(forward, "listening");
  try {
    writeFileSync(join(data, "url"), `https://[::1]:${(forward.address() as AddressInfo).port}\n`);
    const { API, Certificate, Service } = await states({ env: local() });
    assert.deepEqual([API, Certificate, Service], ["ok", "ok", "ok"]);
  } finally {
    writeFileSync(join(data, "url"), `${brume.url}\n`);
    for (const socket of sockets) socket.destroy();
    forward.close();
  }
});

test("a certificate that doctor cannot read is one problem beside the other findings", async () => {
  const url = "https://127.0.0.1:1";
  const { API, Certificate, Service, Token } = await states({ env: { BRUME_URL: url }, fetch: proxied(url) });
  assert.deepEqual([API, Certificate, Service, Token], ["ok", "problem", "ok", "ok"]);
});
