/**
 * Two installations on one host: the second uses neither addresses nor names of the first, and reports at its start which setting to
 * change. The host is a namespace of this test.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { tagOf } from "../../service/src/drivers/router/model/name.ts";
import { hindrance } from "../support/netnslab.ts";
import { createNetworkProcess, type NetworkProcess } from "./networkprocess.ts";
import { pool } from "./routerfixture.ts";

if (hindrance !== null) console.log(`two installations on one host: not tried, ${hindrance}`);

describe("two installations on one host", { skip: hindrance ?? false, concurrency: false }, () => {
  let first: NetworkProcess;
  const routes = async () => (await first.lab.run(first.lab.machine, ["ip", "route"])).split("\n").sort();
  const open = (environment: Readonly<Record<string, string>>, folder?: string) =>
    createNetworkProcess({ lab: first.lab, environment, ...(folder !== undefined && { folder }) });
  const order = async ({ brume }: NetworkProcess) => {
    const network = await brume.client.createPublicNetwork({ body: { Name: "own" } }, { wait: 60 });
    assert.equal(network.State, "Active");
    return network;
  };

  before(async () => {
    first = await createNetworkProcess();
    await order(first);
  });
  after(() => first?.close());

  test("the second starts with its own blocks, and not with those of the first", async () => {
    const routesBefore = await routes();
    const second = await open({ BRUME_SHARED_POOL: "10.62.0.0/16" });
    try {
      await assert.rejects(
        second.brume.start(),
        new RegExp(`BRUME_PUBLIC_POOL: ${pool} overlaps ${pool} of the installation in ${first.brume.folder}\\. Set `),
      );
      assert.deepEqual(await routes(), routesBefore);
    } finally {
      await second.close();
    }
    const third = await open({ BRUME_SHARED_POOL: "10.62.0.0/16", BRUME_PUBLIC_POOL: "10.61.0.0/16" });
    try {
      await third.brume.start();
      const { CIDR } = await order(third);
      const now = await routes();
      assert.ok(now.some((route) => route.startsWith(CIDR)));
      for (const route of routesBefore) assert.ok(now.includes(route), route);
    } finally {
      await third.close();
    }
    assert.deepEqual(await routes(), routesBefore);
  });

  test("it does not start while the service of the first is stopped and its networks run", async () => {
    await first.brume.end("SIGKILL");
    const second = await open({});
    try {
      await assert.rejects(second.brume.start(), /BRUME_PUBLIC_POOL: .* overlaps/);
    } finally {
      await second.close();
    }
    await first.brume.start();
  });

  test("a pool that covers the host's LAN is refused", async () => {
    await first.lab.ip(first.lab.machine, ["addr add 10.61.7.1/24 dev w0"]);
    const second = await open({ BRUME_SHARED_POOL: "10.62.0.0/16", BRUME_PUBLIC_POOL: "10.61.0.0/16" });
    try {
      await assert.rejects(second.brume.start(), /BRUME_PUBLIC_POOL: 10\.61\.0\.0\/16 overlaps the .* of w0/);
    } finally {
      await first.lab.ip(first.lab.machine, ["addr del 10.61.7.1/24 dev w0"]);
      await second.close();
    }
  });

  test("a folder whose names on the host would be those of the first is refused", async () => {
    const base = mkdtempSync(join(tmpdir(), "brq-"));
    let number = 0;
    while (tagOf(join(base, String(number))) !== tagOf(first.brume.folder)) number++;
    const folder = join(base, String(number));
    mkdirSync(folder);
    try {
      const spaces = await first.host();
      const second = await open({ BRUME_SHARED_POOL: "10.62.0.0/16", BRUME_PUBLIC_POOL: "10.61.0.0/16" }, folder);
      // Not cleaned up like the others: objects with these names belong to the first installation.
      await assert.rejects(
        second.brume.start(),
        new RegExp(`BRUME_DATA: the names .* in use by the installation in ${first.brume.folder}`),
      );
      second.shut();
      assert.equal(await first.host(), spaces);
    } finally {
      rmSync(base, { recursive: true });
    }
  });
});
