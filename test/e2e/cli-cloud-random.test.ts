/** Random clouds: the exported file plans to nothing, and applied to an empty installation it makes the same cloud. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Client } from "@brume/api/client.ts";
import { type CommandLine, createCommandLine } from "../support/commandline.ts";
import { type Random, runsOf, withSeed } from "../support/random.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

/** Two installations: the file is written by the first. */
const services: TestService[] = [];
const lines: CommandLine[] = [];
before(async () => {
  for (const _ of [1, 2]) {
    const brume = await createTestService("sqlite");
    services.push(brume);
    lines.push(createCommandLine(brume.url, brume.token));
  }
});
after(async () => {
  for (const line of lines) line.close();
  for (const brume of services) await brume.close();
});

/** Deletes everything of an earlier case. */
async function clear(client: Client): Promise<void> {
  const servers = await client.listServers();
  for (const { ID } of servers) {
    await client.updateServer({ path: { id: ID }, body: { IsProtected: false } });
    await client.deleteServer({ path: { id: ID } }, { wait: 60 });
  }
  for (const { ID } of await client.listDomains()) await client.deleteDomain({ path: { id: ID } });
  for (const { ID } of await client.listNetworks()) await client.deleteNetwork({ path: { id: ID } });
  for (const { Id } of await client.listPublicNetworks()) await client.deletePublicNetwork({ path: { id: Id } });
}

const labels = (random: Random) => (random.chance(30) ? { Labels: { "team/x": random.pick(["a", "b.c", ""]) } } : {});
const times = (random: Random, most: number) => Array.from({ length: random.below(most + 1) }, (_, index) => index);

const rule = (random: Random) => ({
  Action: random.pick(["Allow", "Deny"] as const),
  Source: random.pick(["any", "internal", "EXTERNAL", "10.0.0.7/24", "192.0.2.1/32", "10.0.0.5-10.0.0.9, 10.1.0.1"]),
  ...(random.chance(50) && { Protocol: "Tcp" as const, DestinationPort: random.pick(["any", "443", "80, 8000-8100"]) }),
  ...(random.chance(30) && { Name: 'a: #"rule"' }),
});

const tunnel = (random: Random, index: number) =>
  random.chance(50)
    ? {
        Name: `w ${index}`,
        Type: "WireGuard" as const,
        PeerNetwork: `10.9.${index}.0/24`,
        KeepAlive: random.below(30),
        ...labels(random),
      }
    : {
        Name: `i ${index}`,
        PeerNetwork: `10.9.${index}.0/24`,
        PeerEndpoint: `203.0.113.${index + 1}`,
        Enabled: random.chance(80),
        EncryptionType: random.pick(["Aes", "AesGcm", "TripleDes"] as const),
        PerfectForwardSecrecy: random.chance(50),
        ...labels(random),
      };

const targets = ["@", "mail", "mail.example.net", "WWW.Example.NET."];
const owners = ["@", "www", "a.b", "WWW2", "*", "_acme-challenge"];
const texts = ["abc", "v=spf1 -all", '"a=1" "b=2"', 'say \\"hi\\"', "x".repeat(300), "- not: a list", "ü", "'", "007"];

/** Returns changes that create random records; the service rejects some of them. */
const record = (random: Random): object => {
  const more = { ...(random.chance(50) && { TTL: random.below(9999) }), ...labels(random) };
  const Name = random.pick(owners);
  const type = random.pick(["A", "AAAA", "CNAME", "MX", "NS", "SRV", "TXT"]);
  const data = {
    A: { Name, IP: `192.0.2.${random.below(255)}` },
    AAAA: { Name, IP: `2001:DB8:0::${random.below(9999)}` },
    CNAME: { MnemonicName: `c${random.below(9)}`, Name: random.pick(targets) },
    MX: { HostName: Name, ExtHostName: random.pick([...targets, "."]), Priority: random.below(2) },
    NS: { HostName: `sub${random.below(3)}`, Name: random.pick(targets) },
    SRV: {
      Name: "@",
      Service: random.pick(["sip", "_Xmpp-client."]),
      Proto: "_tcp",
      Port: random.below(9999),
      Target: random.pick(targets),
    },
    TXT: { Name, Text: random.pick(texts) },
  }[type];
  return { Op: "Create", TypeRecord: type, ...data, ...more };
};

async function fill(client: Client, random: Random): Promise<void> {
  const networks: number[] = [];
  for (const index of times(random, 2)) {
    const body = {
      Name: `public ${index}`,
      NetworkCapacity: random.pick(["28", "/27", "64"]),
      Bandwidth: 50 + random.below(100),
      ...labels(random),
    };
    const { Id } = await client.createPublicNetwork({ body });
    networks.push(Id);
    const Rules = times(random, 4).map(() => rule(random));
    if (random.chance(70))
      await client.configureFirewall({ path: { id: Id }, body: { Enabled: random.chance(80), Rules } });
    const Tunnels = times(random, 3).map((one) => tunnel(random, one));
    await client.configureVpn({ path: { id: Id }, body: { Tunnels } });
  }
  for (const index of times(random, 2)) {
    const body = {
      Name: `pri: ${index}`,
      CIDR: `172.2${index}.0.0/24`,
      IsDHCP: random.chance(50),
      ...(random.chance(50) && { Gateway: `172.2${index}.0.1` }),
    };
    networks.push((await client.createNetwork({ body: { ...body, ...labels(random) } })).ID);
  }
  for (const index of times(random, 2)) {
    const body = {
      Name: `server ${index}`,
      RAM: 128 * (1 + random.below(3)),
      CPU: 1 + random.below(2),
      HDDType: random.pick(["SSD", "HDD"] as const),
      IsProtected: random.chance(30),
      ...(random.chance(30) && { isBackupActive: true, BackupPeriod: 14 as const }),
      ...labels(random),
      ...(networks.length > 0 &&
        random.chance(70) && { NetworkID: random.pick(networks), NetworkBandwidth: 10 + random.below(90) }),
    };
    const { ID, LinkedNetworks } = await client.createServer({ body }, { wait: 60 });
    const others = networks.filter((id) => id !== LinkedNetworks[0]?.NetworkID && random.chance(40));
    for (const NetworkID of others)
      await client.startAction({ path: { id: ID }, body: { Type: "AddNetwork", NetworkID } }, { wait: 60 });
    if (random.chance(20)) {
      const NetworkLinkID = LinkedNetworks[0]?.LinkID ?? 0;
      await client.startAction({ path: { id: ID }, body: { Type: "RemoveNetwork", NetworkLinkID } }, { wait: 60 });
    }
  }
  for (const index of times(random, 2)) {
    const { ID } = await client.createDomain({
      body: { Name: random.pick([`d${index}.example`, `bü${index}.example`]), ...labels(random) },
    });
    for (const _ of times(random, 12))
      await client.changeRecords({ path: { id: ID }, body: { Changes: [record(random)] as never } }).catch(() => {});
  }
}

test("the exported file of a random cloud plans to nothing, and makes the same cloud elsewhere", async () => {
  for (let run = 0; run < runsOf(40, 3); run++)
    await withSeed(async (random) => {
      const [from, to] = services as [TestService, TestService];
      const [first, second] = lines as [CommandLine, CommandLine];
      await fill(from.client, random);
      const exported = await first("export");
      assert.equal(exported.code, 0, exported.err);
      const path = join(first.home, "cloud.yaml");
      writeFileSync(path, exported.out);
      const same = await first(["plan", "-f", path]);
      assert.deepEqual([same.code, same.out], [0, "Nothing to do.\n"], `${same.err}${exported.out}`);
      const made = await second(["apply", "-f", path, "--yes"]);
      assert.equal(made.code, 0, made.err + exported.out);
      const copy = await second(["plan", "-f", path]);
      assert.deepEqual([copy.code, copy.out], [0, "Nothing to do.\n"], exported.out);
      for (const { client } of [from, to]) await clear(client);
    });
});
