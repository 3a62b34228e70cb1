/** TLS between control plane and host agent: only certificates of the installation's authority, in their role, and not revoked. */
import assert from "node:assert/strict";
import { request } from "node:https";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { connectAgent } from "../../service/src/agent/client.ts";
import { AgentError } from "../../service/src/agent/error.ts";
import type { Identity } from "../../service/src/agent/tls.ts";
import type { Place } from "../../service/src/agent/transport.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { createSim } from "../../service/src/drivers/machine/sim/sim.ts";
import { type AgentLab, createAgentLab } from "../support/agentlab.ts";
import { identities } from "../support/authority.ts";
import { machine } from "../support/machinelab.ts";
import { until } from "../support/waituntil.ts";

describe("an agent behind TLS", () => {
  const { agentAfterLoss, control, lost, otherAgent, stranger } = identities();
  let lab: AgentLab;
  let place: Exclude<Place, { socket: string }>;
  const sim = createSim({ now: Date.now, images: null });
  before(async () => {
    lab = await createAgentLab({ machines: sim, images: sim, consoles: sim }, "tls");
    assert.ok("port" in lab.place);
    place = lab.place;
  });
  after(() => lab.close());

  const connectAs = (identity: Identity, change: Partial<typeof place> = {}) =>
    connectAgent({ ...place, identity, ...change }, { release: "test", log: silentLog, wait: 0 });
  const refused = (work: Promise<unknown>, reason: RegExp) =>
    assert.rejects(work, (error: unknown) => {
      assert.ok(error instanceof AgentError && error.code === "away", String(error));
      assert.match(error.message, reason);
      return true;
    });

  test("a control plane of another authority and the agent of another host are refused", async () => {
    await refused(connectAs(stranger), /unknown ca|ECONNRESET|another authority|EPIPE|alert/i);
    await refused(connectAs(otherAgent), /unsupported certificate|ECONNRESET|another authority|EPIPE|alert/i);
  });

  test("a client accepts only the agent of the host that it wants", async () => {
    await refused(connectAs(control, { name: "host-2.brume" }), /altnames|Hostname/);
    await refused(connectAs({ ...control, ca: stranger.certificate }), /certificate|issuer/);
  });

  test("no certificate, plain HTTP and an older TLS get no response", async () => {
    const get = (options: object): Promise<number> =>
      new Promise((resolve, reject) => {
        const sent = request(
          {
            host: place.host,
            port: place.port,
            path: "/session/hello",
            method: "POST",
            agent: false,
            rejectUnauthorized: false,
            ...options,
          },
          (response) => resolve(response.statusCode ?? 0),
        );
        sent.on("error", reject);
        sent.end("{}");
      });
    await assert.rejects(get({}));
    await assert.rejects(get({ key: control.key, cert: control.certificate, maxVersion: "TLSv1.2" }));
    assert.equal(
      await get({ key: control.key, cert: control.certificate }),
      400,
      "the same request with a certificate",
    );
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(place.port, place.host);
      let text = "";
      socket.on("data", (bytes) => (text += bytes.toString("latin1")));
      socket.on("error", () => {});
      socket.on("close", () => resolve(text));
      socket.write("POST /session/hello HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}");
    });
    assert.doesNotMatch(answer, /HTTP/);
  });

  test("a revoked certificate is refused, and its open connections and consoles end", async () => {
    const before = await connectAs(lost);
    await before.machines.ensureDisk(machine(), { image: "any" });
    await before.machines.ensureRunning(machine());
    const serial = await before.consoles.openSerial(1);
    serial.resume();
    let isEnded = false;
    serial.on("close", () => (isEnded = true));
    lab.server.renewTls(agentAfterLoss);
    await until("the console has ended", async () => isEnded);
    await refused(before.machines.observe(), /revoked|ECONNRESET|EPIPE|alert/i);
    await refused(connectAs(lost), /revoked|ECONNRESET|EPIPE|alert/i);
    before.close();
    const client = await connectAs(control);
    assert.equal((await client.machines.observe()).machines.length, 1);
    client.close();
  });
});
