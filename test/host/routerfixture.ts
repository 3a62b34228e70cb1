/**
 * Test fixture: the complete service in this process with the real router driver; its host is a namespace of the lab. Servers are
 * namespaces connected by links, so that real packets test the state that was requested through the API.
 */

import { randomBytes } from "node:crypto";
import type { Client } from "@brume/api/client.ts";
import { createClient } from "@brume/api/client.ts";
import type { Event } from "@brume/api/event.ts";
import type { Network, NetworkLink, PublicNetwork } from "@brume/api/network.ts";
import { ensureFirst } from "../../service/src/account/first.ts";
import { systemClock } from "../../service/src/base/clock.ts";
import { silentLog as log } from "../../service/src/base/log.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { deviceOf } from "../../service/src/drivers/machine/qemu/name.ts";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import { createIpsec } from "../../service/src/drivers/router/ipsec/ipsec.ts";
import { ipsecTunnels, wireguardTunnels } from "../../service/src/drivers/router/linux/tunnels.ts";
import { namespaceOf } from "../../service/src/drivers/router/model/name.ts";
import { createWireguard } from "../../service/src/drivers/router/wireguard/wireguard.ts";
import { defineReconciler } from "../../service/src/engine/flow.ts";
import { requestReconcile } from "../../service/src/engine/task.ts";
import { reserveLink } from "../../service/src/network/link.ts";
import type { LinkRow } from "../../service/src/network/linktable.ts";
import { macOf } from "../../service/src/network/model/plan.ts";
import * as table from "../../service/src/network/table.ts";
import { insertServer } from "../../service/src/server/table.ts";
import { createService } from "../../service/src/service.ts";
import type { Store } from "../../service/src/store/db.ts";
import { startDatabase } from "../support/databases.ts";
import { createLab, type Guest, type Lab } from "../support/netnslab.ts";
import { image, port } from "../support/networkspec.ts";
import { newServerRow } from "../support/rows.ts";
import { simulatedHost, simulateGuests } from "../support/testservice.ts";
import { until } from "../support/waituntil.ts";

/** The fields of a network that its servers need. */
type Subnet = { readonly CIDR: string; readonly Gateway: string } & Partial<Pick<PublicNetwork, "CIDR6" | "Gateway6">>;

export interface Server extends Guest {
  readonly link: NetworkLink;
  readonly ip: string;
  readonly ip6: string;
}

export interface RouterFixture {
  readonly lab: Lab;
  readonly store: Store;
  readonly client: Client;
  /** The namespace of a network. */
  edgeOf(network: number): string;
  order(
    name: string,
    spec?: { readonly Bandwidth?: number; readonly NetworkCapacity?: string },
  ): Promise<PublicNetwork>;
  /** Connects a server and waits until packets reach it. `bare`: it has no address yet. */
  plug(network: number, spec?: { readonly bandwidth?: number; readonly bare?: boolean }): Promise<Server>;
  /** Returns the network after its generation is applied. */
  applied(network: number): Promise<PublicNetwork>;
  /** Runs the reconciler, as it does periodically every minute. */
  turn(network: number): Promise<void>;
  events(type: string): Promise<readonly Event[]>;
  /** Stops the service as by SIGTERM and starts it again on the same state. `ipv6`: with IPv6 from then on; else as before. */
  restart(spec?: { readonly ipv6?: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** A pool of addresses that the internet routes, so that NAT does not apply. */
export const pool = "198.19.0.0/16";

/** A reconcile request needs only the name of the networks' reconciler. */
const apply = defineReconciler({ name: "network.apply", subject: "network", period: 0, run: async () => {} });

/** The row of a server without a VM: a failed one, whose links stay. */
const failed = newServerRow({ name: "namespace", host_name: "namespace", state: "Failed", is_on: 0, boot: 0 });

/** Creates a server with a link; the caller connects it and then calls `announce`. */
export async function link(store: Store, network: number, bandwidth?: number): Promise<LinkRow> {
  return store.write(async (tx) => {
    const { id: server } = await insertServer(tx, failed);
    await table.lockNetwork(tx, network);
    const spec = { server, hostName: `server-${server}`, bandwidth, now: Date.now(), pointer: "/NetworkIP" };
    const [row] = await reserveLink(tx, network, spec);
    return row;
  });
}

/** Raises the generation of a network, so that changes of its links are applied. */
export const announce = (store: Store, network: number): Promise<unknown> =>
  store.write(async (tx) => {
    await table.lockNetwork(tx, network);
    const row = await table.findNetwork(tx, network);
    await table.updateNetwork(tx, network, { generation: (row?.generation ?? 0) + 1 });
    await requestReconcile(tx, apply, network);
  });

/** The server of a link, as a namespace with its NIC on the host. */
export async function createServer(
  lab: Lab,
  tag: string,
  ground: Subnet,
  { LinkID, IP, IP6 }: NetworkLink,
  bare = false,
): Promise<Guest> {
  const addresses = IP6 === "" ? [IP] : [IP, IP6];
  const where = port(LinkID, IP, { device: deviceOf(tag, LinkID), mac: macOf(LinkID), addresses });
  if (bare) return lab.bareGuest(where);
  const v4 = { cidr: ground.CIDR, gateway: ground.Gateway === "" ? null : ground.Gateway };
  const v6 = ground.CIDR6 ? { cidr: ground.CIDR6, gateway: ground.Gateway6 ?? null } : null;
  return lab.guest(image({ v4, v6 }), where);
}

/** If `publicPool` has private addresses, the lab's host uses NAT. */
export async function createRouterFixture({ ipv6 = false, publicPool = pool } = {}): Promise<RouterFixture> {
  const lab = await createLab();
  const database = await startDatabase("sqlite");
  const token = randomBytes(32).toString("hex");
  const sealer = createSealer(randomBytes(32));
  const engines = () => {
    const options = { exec, runFolder: lab.runFolder, now: Date.now, lookup: async (host: string) => host, log };
    const { kernelEsp } = lab.capabilities;
    return [
      ipsecTunnels(createIpsec({ ...options, kernelEsp, random: randomBytes, retryAfter: 500 })),
      wireguardTunnels(createWireguard(options)),
    ];
  };

  const open = async (store: Store) => {
    await ensureFirst(store, systemClock, token);
    const transfer = { addresses: [], keys: [], notify: [] };
    const nameserver = await createBuiltin({ host: "127.0.0.1", port: 0, rateLimit: 0, transfer, log });
    const router = lab.open({ tunnels: engines() });
    const given = simulatedHost(router, { ipv6, publicPool }, simulateGuests({ tag: lab.tag }));
    const service = createService({
      store,
      nameserver,
      ...given,
      networks: { ...given.networks, resolvers: ["9.9.9.9"] },
      clock: systemClock,
      random: Math.random,
      log,
      sealer,
      version: "0.0.0",
      dnsNames: ["ns1.brume.internal"],
      resolvers: [],
      lenientHttp: false,
      tls: null,
    });
    const url = `http://${await service.listen("127.0.0.1", 0)}`;
    return { store, nameserver, router, service, client: createClient({ url, token, retries: 0 }) };
  };
  let brume = await open(database.store);
  const end = async () => {
    await brume.service.close(2000);
    await brume.nameserver.close();
    await brume.router.close();
  };

  /** The engine is notified only of commits of its own process; any change of a network through the API wakes it. */
  let turns = 0;
  let bell: PublicNetwork | null = null;
  const synchronise = async () => {
    bell ??= await brume.client.createPublicNetwork({ body: { Name: "bell", NetworkCapacity: "30" } }, { wait: 0 });
    const body = { Name: `bell ${++turns}` };
    await brume.client.updatePublicNetwork({ path: { id: bell.Id }, body }, { wait: 0 });
  };

  const fixture: RouterFixture = {
    lab,
    get store() {
      return brume.store;
    },
    get client() {
      return brume.client;
    },
    edgeOf: (network) => namespaceOf(lab.tag, network),
    async order(name, spec = {}) {
      const { Id } = await brume.client.createPublicNetwork({ body: { Name: name, ...spec } });
      return fixture.applied(Id);
    },
    async plug(network, { bandwidth, bare = false } = {}) {
      const row = await link(brume.store, network, bandwidth);
      const { kind } = (await table.findNetwork(brume.store.read, network)) ?? {};
      const path = { id: network };
      const read = (): Promise<PublicNetwork | Network> =>
        kind === "private" ? brume.client.readNetwork({ path }) : brume.client.readPublicNetwork({ path });
      const subnet = await read();
      const linked = subnet.LinkedServers.find(({ LinkID }) => LinkID === row.id);
      if (linked === undefined) throw new Error(`link ${row.id} is not shown`);
      const guest = await createServer(lab, lab.tag, subnet, linked, bare);
      await announce(brume.store, network);
      await synchronise();
      await until(`network ${network} applied`, async () => {
        const now = await table.findNetwork(brume.store.read, network);
        return now?.applied === now?.generation;
      });
      return { ...guest, link: linked, ip: linked.IP, ip6: linked.IP6 };
    },
    applied: (network) => brume.client.waitFor("readPublicNetwork", { path: { id: network } }, { timeout: 120_000 }),
    async turn(network) {
      await brume.store.write((tx) => requestReconcile(tx, apply, network));
      await synchronise();
    },
    async events(type) {
      const found: Event[] = [];
      for await (const event of brume.client.items("listEvents", { query: { type } })) found.push(event);
      return found;
    },
    async restart(spec = {}) {
      ipv6 = spec.ipv6 ?? ipv6;
      await end();
      await brume.store.close();
      brume = await open(await database.open());
    },
    async close() {
      await end().catch(() => {});
      await database.close();
      await lab.close();
    },
  };
  return fixture;
}
