/**
 * Nothing of the host crosses to the control plane or to clients: errors and results of every verb name no path, program, command line or
 * rule, with and without an agent. The cause stays readable, and the log of the host has the original text under the same request.
 */
import assert from "node:assert/strict";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { contract, type Drivers } from "../../service/src/agent/contract/contract.ts";
import { headers, protocol, type Verb } from "../../service/src/agent/contract/verb.ts";
import type { WireError } from "../../service/src/agent/error.ts";
import { createPlain, plainDriver } from "../../service/src/agent/plain.ts";
import { createTransport } from "../../service/src/agent/transport.ts";
import type { Log } from "../../service/src/base/log.ts";
import { CommandError } from "../../service/src/drivers/exec.ts";
import { DiskError } from "../../service/src/drivers/machine/disk/disk.ts";
import { inputs } from "../support/agentcorpus.ts";
import { createAgentLab, withSimulated } from "../support/agentlab.ts";

/** What must not be in a text, and the cause that must. */
const secret =
  /\/(?:run|var|dev|usr|proc)\b|dnsmasq|charon|qemu|\bnft\b|netns|nsenter|table inet|\bbrume-abc|--[a-z]|[{}]|\n/i;
const failures: readonly { readonly error: Error; readonly cause: RegExp }[] = [
  {
    error: new CommandError(
      ["nsenter", "--net=/run/netns/brume-abc-7", "nft", "-f", "-"],
      1,
      "/dev/stdin:3:1-9: Error: No space left on device\nadd element inet edge by_port { 1 : accept }\n^^^^^^^^^",
      "",
    ),
    cause: /firewall of the network failed: the disk of the host is full/,
  },
  {
    error: new CommandError(
      ["ip", "netns", "exec", "brume-abc-7", "dnsmasq", "--conf-file=/dev/null"],
      2,
      "",
      "took longer than 10000 ms",
    ),
    cause: /DHCP server of the network failed: it did not respond in time/,
  },
  {
    error: Object.assign(new Error("ENOENT: no such file or directory, open '/var/lib/brume/servers/7/state.json'"), {
      code: "ENOENT",
    }),
    cause: /something that it needs is missing on the host/,
  },
  {
    error: Object.assign(new Error("QEMU did not respond to query-status within 10000 ms"), { isSilence: true }),
    cause: /the process of the server failed: it did not respond in time/,
  },
  {
    error: new Error("charon in brume-abc-7 did not start: /usr/lib/ipsec: cannot load"),
    cause: /the IPsec engine failed/,
  },
  { error: new Error(" "), cause: /^the host failed: only the log of the host has the cause \(request/ },
  {
    error: new DiskError("its disk is damaged: layer 1.qcow2 is missing"),
    cause: /^its disk is damaged: layer 1\.qcow2 is missing$/,
  },
];

interface Line {
  readonly text: string;
  readonly detail: { readonly request?: string; readonly error?: Error; readonly detail?: string };
}
function createLogList(): { readonly log: Log; readonly lines: Line[] } {
  const lines: Line[] = [];
  return { lines, log: (_level, text, detail = {}) => void lines.push({ text, detail }) };
}

/** Drivers whose every method does this. */
function driversThat(act: () => unknown): Drivers {
  const simulated = withSimulated({});
  const acting = <D extends object>(driver: D): D =>
    new Proxy(driver, {
      get: (target, name, receiver) =>
        ["onPower", "onDevice", "onExit", "deviceOf", "close"].includes(String(name))
          ? Reflect.get(target, name, receiver)
          : async () => act(),
    });
  const { machines, images, consoles, router, contents, uploads } = simulated;
  return {
    machines: acting(machines),
    images: acting(images),
    consoles: acting(consoles),
    router: acting(router),
    contents: acting(contents),
    uploads: acting(uploads),
  };
}

const verbs = Object.entries(contract)
  .filter(([group]) => group !== "session")
  .flatMap(([group, table]) => Object.entries(table).map(([method, verb]) => ({ group, method, verb: verb as Verb })));

/** Returns the error in the response to a valid request. */
function failureOf(socketPath: string, { group, method, verb }: (typeof verbs)[number]): Promise<WireError> {
  const input = JSON.stringify(inputs[`${group}.${method}`]?.[0] ?? {});
  const isStream = verb.stream !== undefined;
  const path = `/${group}/${method}${isStream ? `?input=${encodeURIComponent(input)}` : ""}`;
  const sent = { [headers.protocol]: String(protocol), [headers.request]: "5e1f0000-1", [headers.fence]: "1000" };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        socketPath,
        path,
        method: isStream ? "GET" : "POST",
        headers: { ...sent, ...(isStream && { connection: "Upgrade", upgrade: "brume-bytes" }) },
      },
      (response) => {
        let text = "";
        response.on("data", (part) => (text += String(part)));
        response.on("end", () => {
          const last = JSON.parse(text.trim().split("\n").at(-1) ?? "") as WireError & { readonly error?: WireError };
          resolve(last.error ?? last);
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(isStream ? undefined : input);
  });
}

describe("texts of the host", () => {
  test("no error of a verb names something of the host, and each has its cause and its request", async () => {
    for (const { error, cause } of failures) {
      const { log, lines } = createLogList();
      const lab = await createAgentLab(
        driversThat(() => Promise.reject(error)),
        "unix",
        { log },
      );
      assert.ok("socket" in lab.place);
      for (const one of verbs) {
        const name = `${one.group}.${one.method}`;
        const wire = await failureOf(lab.place.socket, one);
        assert.equal(wire.code, "driver_failed", `${name}: ${wire.detail}`);
        assert.match(wire.detail, cause, name);
        assert.doesNotMatch(wire.detail, secret, name);
        assert.equal(wire.final ?? false, "final" in error, name);
        assert.equal(wire.isSilence ?? false, "isSilence" in error, name);
        if (wire.detail === error.message) continue;
        assert.match(wire.detail, /\(request 5e1f0000\)$/, name);
        const logged = lines.find(({ text, detail }) => text.startsWith(name) && detail.request === "5e1f0000-1");
        assert.equal(logged?.detail.error, error, name);
      }
      await lab.close();
    }
  });

  test("no result names something of the host", async () => {
    const { log, lines } = createLogList();
    const detail = "qemu-system-x86_64: -blockdev driver=qcow2,file.filename=/var/x: Permission denied";
    const tunnel = {
      id: 1,
      reason: { error: "engine_unavailable", detail: "VICI list-sas: connect ENOENT /run/brume-abc/7/charon.vici" },
    };
    const plain = createPlain(log);
    const answers: readonly object[] = [
      {
        ready: false,
        detail,
        machines: [
          { id: 1, detail, exit: { reason: "died", detail } },
          { id: 2, detail: "", exit: null },
        ],
      },
      { ready: true, detail: "", networks: [{ id: 1, tunnels: [tunnel, { id: 2, reason: null }] }] },
      { removed: false, detail },
      { gb: 1, identity: { removed: false, detail } },
    ];
    for (const answer of answers) {
      const shown = JSON.stringify(await plain.answer(answer, "a.b", "5e1f0000-1"));
      assert.doesNotMatch(shown.replace(/[{}]/g, ""), secret);
      assert.match(shown, /failed: (the host does not permit it|something that it needs is missing)/);
    }
    assert.equal(lines.filter((line) => line.detail.detail === detail).length, 5);
    const clean = { ready: true, detail: "QEMU, emulating", machines: [{ id: 1, detail: "it is paused", exit: null }] };
    assert.deepEqual(await plain.answer(clean, "a.b", "1"), clean);
  });

  test("what a driver throws without being an error becomes one", () => {
    for (const thrown of [undefined, null, {}, "text"]) {
      const shown = createPlain(() => {}).error(thrown, "a.b", "5e1f0000-1");
      assert.ok(shown instanceof Error);
      assert.equal(shown.message, "the host failed: only the log of the host has the cause (request 5e1f0000)");
    }
  });

  test("an agent that is not running is described without its socket", async () => {
    const transport = createTransport({ socket: join(tmpdir(), "brume-no-agent", "socket") });
    await assert.rejects(transport.send({ path: "/session/hello", headers: {}, body: "{}" }), {
      code: "away",
      message: "the host agent does not respond: it is not running",
    });
  });

  test("a service in one process shows the same to its clients", async () => {
    for (const { error, cause } of failures) {
      const { log, lines } = createLogList();
      const { router } = driversThat(() => Promise.reject(error));
      const shown = await plainDriver(router, "router", createPlain(log))
        .remove(7)
        .then(
          () => assert.fail("it did not fail"),
          (failure: unknown) => failure as Error,
        );
      assert.match(shown.message, cause);
      assert.doesNotMatch(shown.message, secret);
      assert.deepEqual(["final" in shown, "isSilence" in shown], ["final" in error, "isSilence" in error]);
      if (shown !== error) {
        const [, id = "?"] = /\(request ([0-9a-f]{8})\)$/.exec(shown.message) ?? [];
        assert.ok(lines.some(({ detail }) => detail.error === error && detail.request?.startsWith(id)));
      }
    }
  });
});
