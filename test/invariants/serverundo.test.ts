/** What a server is started from when an action on it is undone. */
import assert from "node:assert/strict";
import { imageRow, keyRow } from "../support/rows.ts";
import { by, minute, serverInvariant } from "../support/serverenginefixture.ts";

serverInvariant(
  "a rebuild that is undone starts the old disk with its own user data and keys, at once",
  async ({ fixture, alarm, make, write, end, isOn }) => {
    const { commands } = fixture.servers;
    const old = "#cloud-config\nold: 1\n";
    const { id } = await make({ image: imageRow(2), userData: old });
    const seeds: (readonly string[])[] = [];
    const { ensureRunning } = fixture.machines;
    Object.assign(fixture.machines, {
      ensureRunning(machine: Parameters<typeof ensureRunning>[0]) {
        seeds.push(machine.seed.map(({ content }) => String(content)));
        return ensureRunning(machine);
      },
    });
    const rebuild = (plan: Parameters<typeof commands.rebuild>[2]) =>
      write(async (tx) => commands.rebuild(tx, await fixture.row(id), plan, "Power", by));
    const keys = [keyRow(7)];

    const lost = await rebuild({ image: imageRow(99, { name: "lost" }), keys, userData: "#cloud-config\nnew: 1\n" });
    const later = await rebuild({ image: imageRow(98, { name: "lost too" }), keys, userData: null });
    assert.equal((await end(lost.task)).error?.code, "disk_failed");
    assert.equal((await end(later.task)).error?.code, "disk_failed");
    assert.equal(seeds.length, 2, "each starts it once");
    for (const seed of seeds) {
      assert.ok(seed.some((content) => content.includes(Buffer.from(old).toString("base64"))));
      assert.ok(seed.every((content) => !content.includes(keyRow(7).base64)));
    }

    const begun = alarm.now();
    const unreadable = await rebuild({ image: imageRow(2), keys, userData: "H4sIAAAA" });
    const { error, steps } = await end(unreadable.task);
    assert.match(error?.detail ?? "", /^Server \d+ did not start: User data starts like gzip/);
    assert.equal(steps[0]?.state, "Undone");
    assert.ok(alarm.now() - begun < minute, "it is not off for the ten minutes of an undo that cannot succeed");
    assert.equal(await isOn(id), true);
  },
);
