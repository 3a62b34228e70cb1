import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Child, type Exec, exec } from "../../exec.ts";
import { claimHost, type Pool, requireNames } from "./installations.ts";

const pool = (setting: string, block: string, isChosen = false): Pool => ({ setting, blocks: [block], isChosen });
const defaults = [pool("BRUME_PUBLIC_POOL", "10.64.0.0/16"), pool("BRUME_SHARED_POOL", "10.63.0.0/16")];

/** A host with these routes, on which the services of these installations run. */
function createHost(t: { after(work: () => void): void }, routes: readonly object[] = []) {
  const root = mkdtempSync(join(tmpdir(), "brc-"));
  t.after(() => rmSync(root, { recursive: true }));
  const alive = new Set<number>();
  let pid = 4_000_000;
  const started = (): Child => {
    alive.add(++pid);
    return { pid, born: 1 };
  };
  const host: Exec = {
    ...exec,
    run: async (argv) => JSON.stringify(argv.includes("-4") ? routes : []),
    find: started,
    isAlive: (child) => alive.has(child.pid),
  };
  const claim = (tag: string, dataFolder: string, pools: readonly Pool[] = defaults) =>
    claimHost({ exec: host, tag, dataFolder, pools, root });
  const note = (tag: string) => join(root, `brume-${tag}`, "owner.json");
  return { claim, host, root, note, kill: () => alive.clear() };
}

test("the error of a second installation names the blocks in use and their user", async (t) => {
  const { claim, note, kill } = createHost(t);
  await claim("-a1", "/var/lib/one");
  await assert.rejects(claim("-b2", "/var/lib/two"), {
    message:
      "BRUME_PUBLIC_POOL: 10.64.0.0/16 overlaps 10.64.0.0/16 of the installation in /var/lib/one. Set BRUME_PUBLIC_POOL to a block that is free on this host, such as 10.65.0.0/16.",
  });
  assert.ok(!existsSync(note("-b2")), "what did not start claims nothing");
  const others = [pool("BRUME_PUBLIC_POOL", "10.65.0.0/16", true), pool("BRUME_SHARED_POOL", "10.66.0.0/16", true)];
  await claim("-b2", "/var/lib/two", others);
  const { blocks } = JSON.parse(readFileSync(note("-b2"), "utf8")) as { blocks: string[] };
  assert.deepEqual(blocks, ["10.65.0.0/16", "10.66.0.0/16"]);
  // Of one that has nothing on the host any more the note counts no longer.
  kill();
  await claim("-c3", "/var/lib/three");
});

test("each installation has its own names", async (t) => {
  const { claim, host, root, kill } = createHost(t);
  await claim("-a1", "/var/lib/one");
  await assert.rejects(
    claim("-a1", "/var/lib/two"),
    /BRUME_DATA: the names "brume--a1" .* installation in \/var\/lib\/one/,
  );
  await assert.rejects(claim("-a1", "/var/lib/one"), /BRUME_DATA: process \d+ already runs with \/var\/lib\/one/);
  const names = { exec: host, tag: "-a1", root };
  assert.throws(() => requireNames({ ...names, dataFolder: "/var/lib/two" }, false), /installation in/);
  requireNames({ ...names, dataFolder: "/var/lib/one" }, false);
  kill();
  await claim("-a1", "/var/lib/two");
});

test("addresses of the host are not allocated", async (t) => {
  const clash = async (route: object, pools: readonly Pool[], expected: RegExp | null) => {
    const { claim } = createHost(t, [{ dst: "default", dev: "eth0" }, route]);
    if (expected === null) await claim("-a1", "/a", pools);
    else await assert.rejects(claim("-a1", "/a", pools), expected);
  };
  const chosen = [pool("BRUME_PUBLIC_POOL", "10.64.0.0/16", true)];
  await clash({ type: "local", dst: "10.64.3.1", dev: "eth0" }, chosen, /overlaps the address 10\.64\.3\.1 of eth0/);
  await clash({ dst: "10.64.3.0/24", dev: "eth0" }, chosen, /overlaps the route 10\.64\.3\.0\/24 of eth0/);
  await clash({ dst: "10.64.0.0/16", dev: "eth0" }, chosen, /overlaps the route/);
  // An operator may choose a pool that contains a route of the host. A default pool must not overlap it.
  await clash({ dst: "10.0.0.0/8", dev: "eth0" }, chosen, null);
  await clash({ dst: "10.0.0.0/8", dev: "eth0" }, defaults, /such as 172\.16\.0\.0\/16/);
  // Our own, and what leads nowhere.
  await clash({ dst: "10.64.3.0/29", dev: "b-a1u7" }, chosen, null);
  await clash({ type: "blackhole", dst: "10.64.0.0/16" }, chosen, null);
  await clash({ dst: "10.99.0.0/16" }, [pool("BRUME_SHARED_POOL", "169.254.0.0/24", true)], /guests must not use/);
});
