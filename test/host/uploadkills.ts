/**
 * The upload of an image on a real host, while the agent and the control plane are killed: in the middle of a request, and between the parts
 * that the client library and the command line send. Both continue, the disk is the file, and nothing else is left.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Image } from "@brume/api/catalog.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { createCommandLine } from "../support/commandline.ts";
import { until, waitUntil } from "../support/waituntil.ts";
import type { ServerHost } from "./serverhost.ts";

/** How the test kills each process. Each resolves when another process of its kind runs. */
export interface Kills {
  killAgent(): Promise<void>;
  killControl(): Promise<void>;
}

/** Uploads the file at `path` under the name, and waits until servers can be created from it. */
export async function uploadDisk({ client }: ServerHost, path: string, Name: string): Promise<Image> {
  const image = await client.uploadImage({ Name }, new Blob([readFileSync(path)]));
  return client.waitFor("readImage", { path: { id: image.ID } }, { timeout: 120_000 });
}

/** Returns the disk of an image on the host. */
function diskOf({ brume }: ServerHost, { ID }: Pick<Image, "ID">): string {
  const folder = join(brume.folder, "images", `own-${ID}`);
  const [disk = ""] = readdirSync(folder).filter((name) => name.endsWith(".qcow2"));
  return join(folder, disk);
}

/**
 * Sends a part of the content in a request that does not end. Resolves when the host has it, or with no connection if the service has
 * responded: it may not have reached the agent again, or may still end the request before.
 */
async function sendPart({ brume }: ServerHost, { ID, Upload }: Image, content: Buffer, bytes: number) {
  const { Received: from, Size: size } = Upload ?? { Received: 0, Size: 0 };
  const socket = connect(Number(new URL(brume.url).port), "127.0.0.1");
  let response = "";
  socket.on("error", () => {});
  socket.setEncoding("latin1").on("data", (text: string) => (response += text));
  await once(socket, "connect");
  const head = [
    `PUT /image/${ID}/content HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${brume.token}`,
    `Content-Range: bytes ${from}-${size - 1}/${size}`,
    `Content-Length: ${size - from}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  socket.write(content.subarray(from, from + bytes));
  const file = join(brume.folder, "uploads", `own-${ID}`);
  const hasPart = (): boolean => existsSync(file) && statSync(file).size >= from + bytes;
  await until("the host has the part, or the service responds", async () => hasPart() || response !== "");
  if (response === "") return socket;
  socket.destroy();
  assert.match(response, /^HTTP\/1\.1 (409|503) /);
  return null;
}

/** Uploads the file at `path` while the processes are killed, and checks what is stored. Throws if anything is lost or left. */
export async function checkInterruptedUpload(host: ServerHost, path: string, kills: Kills): Promise<void> {
  const { client, brume } = host;
  const content = readFileSync(path);
  const Sha256 = createHash("sha256").update(content).digest("hex");
  const { ID } = await client.createImage({ body: { Name: "killed", Size: content.length, Sha256 } });
  const read = () => client.readImage({ path: { id: ID } });

  // The second part is longer: the host can have all of the first one, so its length is no sign of the second request.
  for (const [kill, bytes] of [
    [kills.killAgent, 3_000_000],
    [kills.killControl, 5_000_000],
  ] as const) {
    let before = await read();
    const socket = await waitUntil(
      "a request that the service does not reject",
      async () => {
        before = await read();
        return sendPart(host, before, content, bytes);
      },
      (sent) => sent !== null,
    );
    await kill();
    socket?.destroy();
    const now = (await read()).Upload?.Received ?? 0;
    const least = before.Upload?.Received ?? 0;
    assert.ok(now >= least && now <= least + bytes, `${now} bytes after ${least}`);
  }

  const controller = new AbortController();
  const killed: Promise<void>[] = [];
  const sending = client.uploadImage({ ID }, new Blob([content]), {
    signal: controller.signal,
    onProgress({ Upload }) {
      const { Received = 0 } = Upload ?? {};
      if (Received > 0 && killed.length === 0) killed.push(kills.killControl());
      if (Received > content.length / 2) controller.abort();
    },
  });
  await assert.rejects(sending, { name: "AbortError" });
  await Promise.all(killed);
  assert.equal(killed.length, 1);
  const begun = (await read()).Upload?.Received ?? 0;
  assert.ok(begun > content.length / 2 && begun < content.length, `${begun} of ${content.length} bytes`);

  const cli = createCommandLine(brume.url, brume.token);
  try {
    const line = ["image", "upload", path, "--name", "killed", "-o", "json"];
    const onErr = (text: string): void => {
      if (/ % {2}/.test(text) && killed.length === 1) killed.push(kills.killAgent());
    };
    const { code, out, err } = await cli(line, { terminal: 100, onErr });
    assert.equal(code, 0, err);
    assert.match(err, new RegExp(`Continues the upload of image ${ID} \\(killed\\)\\.`));
    assert.equal((JSON.parse(out) as Image).State, "Active");
  } finally {
    cli.close();
  }
  await Promise.all(killed);
  assert.equal(killed.length, 2);

  // It exits with an error if they differ.
  await exec.run(["qemu-img", "compare", path, diskOf(host, { ID })]);
  assert.deepEqual(readdirSync(join(brume.folder, "uploads")), []);
  const left = () => readdirSync(join(brume.folder, "images")).filter((name) => name !== "brume-tiny");
  assert.deepEqual(
    left().filter((name) => !/^own-\d+$/.test(name)),
    [],
  );
  await client.deleteImage({ path: { id: ID } }, { wait: 60 });
  await waitUntil("the removal of the image", left, (names) => !names.includes(`own-${ID}`), 50);
}
