/**
 * Real servers in networks: a group created and deleted atomically, NICs added and removed while the guests run, addresses by DHCP and
 * from the seed, an isolated private network, and a public one behind its firewall.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Batch } from "@brume/api/batch.ts";
import type { Server } from "@brume/api/server.ts";
import { until } from "../support/waituntil.ts";
import { actionTimeout, createServerHost, hindrance, type ServerHost, type Traces } from "./serverhost.ts";

if (hindrance !== null) console.log(`servers in networks: not tried, ${hindrance}`);

describe("servers in networks", { skip: hindrance ?? false, concurrency: false }, () => {
  let host: ServerHost;
  let initial: Traces;
  let batch: Batch;
  let [one, two, three]: (Server | undefined)[] = [];
  let inner: number;
  before(async () => {
    host = await createServerHost();
    initial = await host.traces();
  });
  after(() => host?.close());

  const idOf = (server: Server | undefined) => server?.ID ?? 0;
  const inside = (server: Server | undefined, command: string) => host.run(server?.IP ?? "", command);
  const linkIn = async (server: Server | undefined, network: number) =>
    (await host.read(idOf(server))).LinkedNetworks.find(({ NetworkID }) => NetworkID === network);
  const pings = (server: Server | undefined, address: string) =>
    host.ssh(server?.IP ?? "", `ping -c 1 -W 2 ${address}`).then((output) => output !== null);
  const addressIn = async (ip: string, nic: string) =>
    (await host.ssh(ip, `ip -4 -o addr show ${nic} | awk '{ print $4 }'`)) ?? "";
  const addressOf = (server: Server | undefined, nic: string) => addressIn(server?.IP ?? "", nic);

  test("three are created atomically", async () => {
    const spec = {
      Name: "node-{n}",
      Count: 3,
      CPU: 1,
      RAM: 128,
      HDD: 1,
      SshKeys: [host.keyId],
      WaitFor: "Ssh" as const,
    };
    batch = await host.client.createBatch({ body: spec });
    for (const { ID } of batch.Servers) assert.equal((await host.lastAction(ID)).State, "Completed");
    [one, two, three] = await host.client.listServers({ query: { batch: batch.ID } });
    assert.deepEqual(
      [one, two, three].map((server) => server?.State),
      ["Active", "Active", "Active"],
    );
    assert.deepEqual(await Promise.all([one, two, three].map((server) => inside(server, "hostname"))), [
      "node-1",
      "node-2",
      "node-3",
    ]);
    assert.equal(new Set([one, two, three].flatMap((server) => server?.LinkedNetworks.map(({ MAC }) => MAC))).size, 3);
  });

  test("servers of a private network reach each other, with addresses by DHCP; no other server does", async () => {
    inner = (await host.client.createNetwork({ body: { Name: "inner", CIDR: "192.168.7.0/24" } })).ID;
    await Promise.all(
      [one, two].map(async (server) => {
        const added = await host.act(idOf(server), { Type: "AddNetwork", NetworkID: inner });
        assert.equal(added.State, "Completed", JSON.stringify(added));
      }),
    );
    const [first, second] = [await linkIn(one, inner), await linkIn(two, inner)];
    assert.deepEqual([first?.LinkState, first?.IP], ["Active", first?.IP]);
    for (const [server, link] of [
      [one, first],
      [two, second],
    ] as const) {
      await until(`${link?.IP} is taken`, async () => (await addressOf(server, "eth1")) === `${link?.IP}/24`);
      assert.equal(await inside(server, "cat /sys/class/net/eth1/address"), link?.MAC);
    }
    assert.ok(await pings(one, second?.IP ?? ""), "one reaches two");
    assert.ok(!(await pings(three, second?.IP ?? "")), "three is outside");
    const { leases, ports } = await host.traces();
    assert.deepEqual([leases.length, ports.length], [5, 5]);
  });

  test("a server cannot use another server's address", async () => {
    const second = await linkIn(two, inner);
    await inside(one, "ip addr add 192.168.7.200/24 dev eth1");
    assert.equal(
      await host.ssh(one?.IP ?? "", `ping -c 1 -W 2 -I 192.168.7.200 ${second?.IP}`),
      null,
      "an address that is not its own",
    );
    await inside(one, "ip addr del 192.168.7.200/24 dev eth1");
    assert.ok(await pings(one, second?.IP ?? ""));
  });

  test("a start gives the same addresses again, and a removed NIC is gone in the guest", async () => {
    const second = await linkIn(two, inner);
    const reset = await host.act(idOf(two), { Type: "PowerReboot", WaitFor: "Ssh" });
    assert.equal(reset.State, "Completed", JSON.stringify(reset));
    assert.equal(await addressOf(two, "eth1"), `${second?.IP}/24`);
    assert.ok(await pings(one, second?.IP ?? ""), "over a NIC that is new on the host");

    const removed = await host.act(idOf(one), { Type: "RemoveNetwork", NetworkID: inner });
    assert.equal(removed.State, "Completed", JSON.stringify(removed));
    await until("its NIC is gone", async () => (await host.ssh(one?.IP ?? "", "ls /sys/class/net")) === "eth0\nlo");
    assert.equal(await linkIn(one, inner), undefined);
    assert.equal((await host.traces()).ports.length, 4);
  });

  test("a static address is the requested one, behind an existing firewall", async () => {
    const { client, lab } = host;
    const network = await client.createPublicNetwork({ body: { Name: "outer" } }, { wait: 60 });
    const path = { id: network.Id };
    await client.configureFirewall({ path, body: { Rules: [] } }, { wait: 60 });
    const NetworkIP = network.CIDR.replace(/\d+\/\d+$/, (end) => String(Number.parseInt(end, 10) + 5));
    const server = await host.create({ Name: "outer", NetworkID: network.Id, NetworkIP });
    assert.equal(server.IP, NetworkIP);
    const enter = () => host.ssh(server.IP, "hostname", { from: lab.internet });
    assert.equal(await enter(), null, "everything is closed");
    const Rules = [{ Action: "Allow", Protocol: "Tcp", Source: "external", DestinationPort: "22" } as const];
    await client.configureFirewall({ path, body: { Rules } }, { wait: 60 });
    assert.equal(await enter(), "outer");
    await host.delete(server.ID);
    await client.deletePublicNetwork({ path }, { wait: 60 });
  });

  test("the first network with a gateway has the default route, and after its removal the next one", async () => {
    const { client } = host;
    const order = (Name: string) => client.createPublicNetwork({ body: { Name } }, { wait: 60 });
    const [near, far] = [await order("near"), await order("far")];
    const { ID, IP } = await host.create({ Name: "mover" });
    const shared = (await host.read(ID)).LinkedNetworks[0]?.NetworkID ?? 0;
    const move = async (Type: "AddNetwork" | "RemoveNetwork", NetworkID: number) => {
      const moved = await host.act(ID, { Type, NetworkID });
      assert.equal(moved.State, "Completed", JSON.stringify(moved));
      return (await host.read(ID)).LinkedNetworks.find((link) => link.NetworkID === NetworkID)?.IP ?? "";
    };
    /** Returns the gateway of the guest's default route. */
    const way = (address: string) =>
      host.ssh(address, "ip route get 198.51.100.1 | sed -n 's/.* via \\([^ ]*\\).*/\\1/p'");

    const nearIp = await move("AddNetwork", near.Id);
    await until("the NIC has its address", async () => (await addressIn(IP, "eth1")).startsWith(nearIp));
    assert.notEqual(await way(IP), near.Gateway);
    const enter = (address: string) => host.ssh(address, "hostname", { from: host.lab.internet });
    assert.equal(await enter(nearIp), "mover", "replies leave by the network that they belong to");
    await move("RemoveNetwork", shared);
    await until("the other NIC has the default route", async () => (await way(nearIp)) === near.Gateway);

    const farIp = await move("AddNetwork", far.Id);
    const restart = await host.act(ID, { Type: "PowerReboot", WaitFor: "Ssh" });
    assert.equal(restart.State, "Completed", JSON.stringify(restart));
    assert.equal(await way(nearIp), near.Gateway);
    assert.equal(await enter(farIp), "mover", "also with an address that it has from its start");
    await move("RemoveNetwork", near.Id);
    await until("the last NIC has the default route", async () => (await way(farIp)) === far.Gateway);
    await host.delete(ID);
    for (const { Id } of [near, far]) await client.deletePublicNetwork({ path: { id: Id } }, { wait: 60 });
  });

  test("all servers of the group are deleted atomically, with everything they had", async () => {
    await host.client.deleteBatch({ body: { ID: batch.ID } }, { wait: 60 });
    await until("no server is left", async () => (await host.client.listServers()).length === 0, actionTimeout);
    await host.client.deleteNetwork({ path: { id: inner } }, { wait: 60 });
    await until("the networks are gone", async () => (await host.traces()).namespaces.length === 1);
    assert.deepEqual(await host.traces(), initial);
    assert.deepEqual(
      host.brume.log.filter(({ level }) => level > 30),
      [],
    );
  });
});
