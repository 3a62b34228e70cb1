/**
 * docs/spec.md#acknowledged-changes-survive over an upgrade: data folders of an earlier release (test/data/former) are started as they
 * are. All objects are there, secrets can be decrypted, work that the earlier release began ends, and the objects can be changed.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createClient } from "@brume/api/client.ts";
import { databases } from "../support/databases.ts";
import { createProcess } from "../support/process.ts";

interface Former {
  readonly token: string;
  readonly serial: number;
  readonly listServers: readonly string[];
  readonly listTokens: readonly string[];
}

for (const kind of databases)
  test(`${kind}: an installation of an earlier release is upgraded in place`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "brume-upgrade-"));
    const archive = fileURLToPath(new URL(`../data/former/${kind}.tar.gz`, import.meta.url));
    execFileSync("tar", ["-xzf", archive, "-C", folder]);
    const former = JSON.parse(readFileSync(join(folder, "former.json"), "utf8")) as Former;
    const brume = await createProcess(kind, { folder, stopped: true, environment: { BRUME_TOKEN: former.token } });
    try {
      // Lines that begin with a backslash are commands of psql.
      if (kind === "postgres")
        await brume.query(readFileSync(join(folder, "brume.sql"), "utf8").replace(/^\\.*$/gm, ""));
      await brume.start();
      const client = createClient({ url: brume.url, token: former.token, retries: 0 });
      const names = (list: readonly { readonly Name: string }[]): string[] => list.map(({ Name }) => Name);

      const servers = await client.listServers();
      assert.deepEqual(names(servers), former.listServers);
      assert.deepEqual(names(await client.listTokens()), former.listTokens);
      // The index of names is filled for them.
      for (const { ID, Name } of servers)
        assert.ok((await client.listServers({ query: { name: Name.toUpperCase() } })).some((one) => one.ID === ID));
      assert.deepEqual(names(await client.listNetworks({ query: { name: "BACK" } })), ["back"]);
      assert.deepEqual(names(await client.listNetworks()), ["back"]);
      assert.equal((await client.listSshKeys())[0]?.Title, "former");
      const [domain] = await client.listDomains();
      assert.ok(domain !== undefined);
      assert.equal(domain.Serial, former.serial);
      assert.equal((await client.listDomains({ query: { name: domain.Name, records: false } })).length, 1);
      assert.equal(
        domain.LinkedRecords.filter(({ TypeRecord }) => TypeRecord === "TXT")[0]?.Text,
        String.raw`"say \"hi\" \\ there" `,
      );

      const network = await client.waitFor("readPublicNetwork", {
        path: { id: (await client.listPublicNetworks())[0]?.Id ?? 0 },
      });
      assert.deepEqual([network.State, network.Error, network.Firewall.Rules.length], ["Active", null, 1]);
      assert.equal(
        network.Vpn.Tunnels[0]?.SharedKey,
        "a-very-long-shared-key-1",
        "secrets are decrypted with the same key",
      );

      // What was under way ends: the creation, and the two actions behind each other.
      const [web, unfinished] = [servers[0], servers.at(-1)];
      assert.ok(web !== undefined && unfinished !== undefined);
      const created = await client.waitFor("readServer", { path: { id: unfinished.ID } });
      assert.deepEqual([created.State, created.Error], ["Active", null]);
      const off = await client.waitFor(
        "readServer",
        { path: { id: web.ID } },
        { until: ({ IsPowerOn }) => !IsPowerOn },
      );
      assert.equal(off.LinkedNetworks.length, 2);
      const actions = await client.listActions({ path: { id: web.ID } });
      assert.deepEqual(
        actions.filter(({ State }) => State !== "Completed"),
        [],
      );

      // And all can be changed.
      await client.updateServer({ path: { id: web.ID }, body: { RAM: 1024 } }, { wait: 60 });
      await client.createRecordA({ body: { DomainId: domain.ID, Name: "new", IP: "192.0.2.9" } });
      for (const { ID } of await client.listServers()) await client.deleteServer({ path: { id: ID } }, { wait: 60 });
      await client.waitFor("listServers", {}, { until: (list) => list.length === 0 });
      await client.deletePublicNetwork({ path: { id: network.Id } }, { wait: 60 });
      assert.deepEqual(
        brume.log.filter(({ level }) => level >= 50).map(({ msg }) => msg),
        [],
      );
    } finally {
      await brume.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
