/** The API over TLS, spoken by the process itself: the certificate is shown, old protocols and plain HTTP are turned away, and settings that do not fit stop the start. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { createWorld, type World } from "../world.ts";

const folder = resolve(import.meta.dirname, "tls");
const tls = {
  certificate: readFileSync(join(folder, "certificate.pem"), "utf8"),
  key: readFileSync(join(folder, "key.pem"), "utf8"),
};

describe("TLS", () => {
  let world: World;
  let port = 0;
  before(async () => {
    world = await createWorld("sqlite", { tls });
    port = Number(new URL(world.url).port);
  });
  after(() => world.close());

  const ask = (path: string, body?: object): Promise<{ status: number; text: string }> =>
    new Promise((done, failed) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port,
          path,
          method: body === undefined ? "GET" : "POST",
          ca: tls.certificate,
          headers: { Authorization: `Bearer ${world.token}`, "Content-Type": "application/json" },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part: string) => {
            text += part;
          });
          response.on("end", () => done({ status: response.statusCode ?? 0, text }));
        },
      );
      sent.on("error", failed);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });

  test("reads and changes work for a client that knows the certificate", async () => {
    const made = await ask("/dns", { Name: "tls.example" });
    assert.equal(made.status, 200);
    assert.match((await ask("/dns")).text, /"Name":"tls\.example"/);
  });

  test("only TLS 1.2 and newer is spoken", async () => {
    const dial = async (version: "TLSv1.1" | "TLSv1.2" | "TLSv1.3"): Promise<string> => {
      const socket: TLSSocket = connectTls({
        host: "127.0.0.1",
        port,
        ca: tls.certificate,
        minVersion: version,
        maxVersion: version,
        ciphers: "DEFAULT@SECLEVEL=0",
      });
      try {
        await once(socket, "secureConnect");
        return socket.getProtocol() ?? "";
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? "refused";
      } finally {
        socket.destroy();
      }
    };
    assert.equal(await dial("TLSv1.2"), "TLSv1.2");
    assert.equal(await dial("TLSv1.3"), "TLSv1.3");
    assert.match(await dial("TLSv1.1"), /^(ERR_SSL|ECONNRESET)/);
  });

  test("plain HTTP is not answered, and the service goes on", async () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("GET /healthz HTTP/1.1\r\n\r\n");
    let heard = "";
    socket.on("data", (part) => {
      heard += part.toString("latin1");
    });
    await once(socket, "close");
    assert.doesNotMatch(heard, /^HTTP\/1\.1 200/);
    assert.equal((await ask("/healthz")).status, 200);
  });
});

test("a certificate without its key stops the start with a sentence", () => {
  const data = mkdtempSync(join(tmpdir(), "brume-tls-"));
  const main = resolve(import.meta.dirname, "../../service/src/main.ts");
  const { status, stderr } = spawnSync(process.execPath, [main], {
    env: {
      PATH: process.env["PATH"],
      BRUME_DATA: data,
      BRUME_SIMULATE: "1",
      BRUME_TLS_CERT: join(folder, "certificate.pem"),
    },
    encoding: "utf8",
  });
  rmSync(data, { recursive: true });
  assert.equal(status, 1);
  assert.match(stderr, /BRUME_TLS_CERT and BRUME_TLS_KEY must be both files or neither/);
});
