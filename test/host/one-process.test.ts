/** A host, such as some containers, that permits no private root: the service runs as one process, and its log states that. */
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { test } from "node:test";
import { tagOf } from "../../service/src/drivers/router/model/name.ts";
import { createProcess } from "../support/process.ts";
import { halvesOf } from "./halves.ts";

const skip = process.getuid?.() === 0 ? false : "needs root";
if (skip) console.log(`a host without private roots: not tried, ${skip}`);

test("without the right to a private root, the service is one process, and its log states that", {
  skip,
}, async (t) => {
  // Without the other capability it changes no network of this host.
  const rights = "--bounding-set=-sys_admin,-net_admin --inh-caps=-sys_admin,-net_admin";
  const brume = await createProcess("sqlite", {
    prefix: `exec setpriv ${rights} "$0" "$@";`,
    environment: { BRUME_SIMULATE: "0", BRUME_PROCESSES: "2", BRUME_PUBLIC_POOL: "198.19.0.0/16" },
  });
  t.after(async () => {
    await brume.close();
    rmSync(`/run/brume-${tagOf(brume.folder)}`, { recursive: true, force: true });
  });
  assert.ok(brume.log.some(({ level, msg }) => level === 40 && /serves clients has all rights of root/.test(msg)));
  assert.deepEqual(halvesOf(brume.pid), {});
  assert.match(readFileSync(`/proc/${brume.pid}/cmdline`, "latin1"), /main\.js\0$/);
  const { Name } = await brume.client.createDomain({ body: { Name: "one.example", Ip: "192.0.2.7" } });
  assert.equal(Name, "one.example");
  const { ID } = await brume.client.createServer({ body: { Name: "simulated" } }, { wait: 60 });
  assert.equal((await brume.client.readServer({ path: { id: ID } })).State, "Active");
  // The next start, also one of a release before, finds the same rows.
  await brume.end("SIGKILL");
  await brume.start();
  assert.equal((await brume.client.readServer({ path: { id: ID } })).Name, "simulated");
});
