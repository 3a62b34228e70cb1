/**
 * Networks and tunnels while the agent and the control plane are killed, stopped and upgraded under load: pings through two tunnels lose no
 * packet, and every change that the API has confirmed exists once. The tunnels are up before the installation becomes two processes.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createPrivate, publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { whyNot } from "../support/hindrance.ts";
import { hindrance } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";
import { createFarEnd, type FarEnd, startWireguard } from "./farend.ts";
import { halvesOf, startPing } from "./halves.ts";
import { createNetworkProcess, type NetworkProcess } from "./networkprocess.ts";
import type { Server } from "./routerfixture.ts";
import { startStrongswan } from "./strongswan.ts";
import type { VpnFixture } from "./vpnfixture.ts";

const skip = hindrance ?? whyNot("charon-systemd", "swanctl", "wireguard-go", "nsenter", "ping");
if (skip) console.log(`networks of a killed agent: not tried, ${skip}`);

describe("networks of an agent and a control plane that are killed", { skip, concurrency: false }, () => {
  const farKey = createPrivate(randomBytes);
  let at: NetworkProcess;
  let server: Server;
  let office: FarEnd;
  let branch: FarEnd;
  /** Names of networks by what the API has confirmed. */
  const created = new Set<string>();
  const deleted = new Set<string>();
  let names = 0;

  const pidOf = (half: "agent" | "control"): number => halvesOf(at.brume.pid)[half] ?? assert.fail(`no ${half} runs`);
  /** Creates networks and deletes every second one until it is stopped. A request without a response proves nothing. */
  function startLoad(): () => Promise<void> {
    let isOn = true;
    const work = async (): Promise<void> => {
      while (isOn) {
        const number = ++names;
        const name = `load-${number}`;
        try {
          const { Id } = await at.brume.client.createPublicNetwork({ body: { Name: name } });
          created.add(name);
          if (number % 2 === 0) continue;
          await at.brume.client.deletePublicNetwork({ path: { id: Id } });
          deleted.add(name);
        } catch {
          await sleep(50);
        }
      }
    };
    const works = [work(), work()];
    return async () => {
      isOn = false;
      await Promise.all(works);
    };
  }
  /** Runs `work` under load while both tunnels are pinged; checks packets, rows and the host. */
  async function undisturbed(work: () => Promise<void>): Promise<void> {
    const pings = [office, branch].map(({ server: far }) => startPing(server.space, far));
    const before = created.size;
    const stopLoad = startLoad();
    await until("the load has begun", async () => created.size > before, 60_000);
    await work();
    await sleep(1000);
    await stopLoad();
    for (const [index, ping] of pings.entries())
      assert.deepEqual(await ping.end(), [], index === 0 ? "IPsec" : "WireGuard");
    const all = await until(
      "all networks are applied",
      async () => {
        const list = await at.brume.client.listPublicNetworks();
        return list.every((one) => one.State === "Active" && one.AppliedGeneration === one.Generation) && list;
      },
      60_000,
    );
    const shown = all.map(({ Name }) => Name).filter((name) => name.startsWith("load-"));
    assert.equal(new Set(shown).size, shown.length, "a network exists twice");
    for (const name of created) assert.ok(shown.includes(name) || deleted.has(name) || isDeleting(name), name);
    for (const name of deleted) assert.ok(!shown.includes(name), name);
    const wanted = [1, ...all.map(({ Id }) => Id)].map(at.edgeOf).sort();
    await until(
      "the host has these networks",
      async () => {
        const { namespaces } = JSON.parse(await at.host()) as { namespaces: string[] };
        return namespaces.join() === wanted.join();
      },
      60_000,
    );
  }
  /** Its deletion had no response, so it may or may not be deleted. */
  const isDeleting = (name: string): boolean => Number(name.slice("load-".length)) % 2 === 1;
  /** Ends one half with a signal, and waits until the supervisor has started it again. */
  async function replace(half: "agent" | "control", signal: NodeJS.Signals): Promise<void> {
    const [pid, other] = [pidOf(half), pidOf(half === "agent" ? "control" : "agent")];
    process.kill(pid, signal);
    await until(`another ${half}`, async () => (halvesOf(at.brume.pid)[half] ?? pid) !== pid, 60_000);
    await until(
      "it works",
      async () => {
        const { status } = await fetch(`${at.brume.url}/readyz`).catch(() => ({ status: 0 }));
        return status === 200;
      },
      60_000,
    );
    assert.equal(pidOf(half === "agent" ? "control" : "agent"), other, "the other half was started again");
  }

  before(async () => {
    at = await createNetworkProcess();
    const head = await at.brume.client.createPublicNetwork({ body: { Name: "head" } }, { wait: 60 });
    await at.brume.end("SIGTERM");
    server = await at.plug(head);
    await at.brume.start();
    [office, branch] = [await createFarEnd(at.lab, 1), await createFarEnd(at.lab, 2)];
    const body = {
      Tunnels: [
        { Name: "office", PeerNetwork: office.cidr, PeerEndpoint: office.address },
        {
          Name: "branch",
          Type: "WireGuard" as const,
          PeerNetwork: branch.cidr,
          PeerEndpoint: `${branch.address}:51821`,
          PeerPublicKey: publicKeyOf(farKey),
          KeepAlive: 1,
        },
      ],
    };
    const { Vpn } = await at.brume.client.configureVpn({ path: { id: head.Id }, body }, { wait: 60 });
    const [ipsec, wireguard] = Vpn.Tunnels;
    assert.ok(ipsec && wireguard);
    const strongswan = await startStrongswan({
      folder: office.folder,
      far: { namespace: office.namespace },
    } as VpnFixture);
    await strongswan.load(ipsec.PeerConfig.replaceAll("<SharedKey>", ipsec.SharedKey));
    await (await startWireguard(branch, `b${at.lab.tag}f`)).configure(wireguard, farKey, head.CIDR);
    for (const { server: far } of [office, branch])
      await until(`${far} answers`, () => at.lab.works(server.space, ["ping", "-c", "1", "-W", "1", far]), 60_000);
  });
  after(async () => {
    for (const end of [office, branch]) await end?.close();
    await at?.close();
  });

  test("one process becomes two", () =>
    undisturbed(async () => {
      await at.brume.end("SIGTERM");
      at.brume.set("BRUME_PROCESSES", "2");
      await at.brume.start();
      pidOf("agent");
    }));

  for (const half of ["agent", "control"] as const)
    for (const signal of ["SIGKILL", "SIGTERM"] as const)
      test(`the ${half} gets ${signal}`, () => undisturbed(() => replace(half, signal)));

  test("both are killed at once, with the supervisor", () =>
    undisturbed(async () => {
      await at.brume.end("SIGKILL");
      await at.brume.start();
    }));
});
