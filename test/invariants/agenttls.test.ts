/** TLS between control plane and host agent: only certificates of the installation's authority, in their role, and not revoked. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:https";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
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

  test("a revocation holds for connections without a handshake, and for sessions that are resumed", async (t) => {
    const options = { ca: lost.ca, key: lost.key, cert: lost.certificate, servername: place.name };
    /** Sends a request over a connection; resolves to the status and the ticket of its session, null without a response. */
    const call = (how: ConnectionOptions) =>
      new Promise<{ status: string; ticket: Buffer | undefined } | null>((resolve) => {
        const socket = connectTls({ ...options, ...how });
        let ticket: Buffer | undefined;
        socket.on("session", (session) => (ticket = session));
        socket.on("error", () => {});
        socket.on("close", () => resolve(null));
        socket.on("data", (bytes: Buffer) => {
          resolve({ status: bytes.toString("latin1", 9, 12), ticket });
          socket.destroy();
        });
        socket.write("POST /session/hello HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}");
      });
    const other = await createAgentLab({ machines: sim }, "tls");
    t.after(() => other.close());
    assert.ok("port" in other.place);
    const { host, port } = other.place;
    const before = await call({ host, port });
    assert.ok(before?.status === "400" && before.ticket !== undefined);
    assert.equal((await call({ host, port, session: before.ticket }))?.status, "400", "the session is resumed");
    const socket = connect(port, host);
    await once(socket, "connect");
    // The agent has accepted it when a later connection has a response.
    await call({ host, port });
    other.server.renewTls(agentAfterLoss);
    assert.equal(await call({ socket }), null, "a connection that was open");
    assert.equal(await call({ host, port, session: before.ticket }), null, "a session");
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
