/**
 * Fixture of the network tests: networks with servers, packets, and a clock that tests can advance. The router is simulated, so sending a
 * packet is a function call, and tests can order failures of the host.
 */
import assert from "node:assert/strict";
import { afterEach } from "node:test";
import type { ChangeOptions } from "@brume/api/client.ts";
import type { Problem } from "@brume/api/errors.ts";
import type { Event } from "@brume/api/event.ts";
import type { FirewallInput, FirewallRuleInput } from "@brume/api/firewall.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { type Caller, type Harness, refused } from "./harness.ts";

/** Runs with the system clock, plus the time that `pass` has added. */
export interface MovableClock {
  now(): number;
  /** Advances the clock. */
  pass(seconds: number): void;
}

export function createMovableClock(): MovableClock {
  let ahead = 0;
  return {
    now: () => Date.now() + ahead,
    pass(seconds) {
      ahead += seconds * 1000;
    },
  };
}

/** Creates networks and servers through the API, and waits for their states. */
export interface NetworkFixture {
  /** Advances the clock and makes the service check what is due. */
  pass(seconds: number): Promise<void>;
  /** Makes the service poll the host now: advances the clock by 6 s. */
  pollHost(): Promise<void>;
  /** Creates a public network with a unique name and waits until it is active. */
  network(more?: object): Promise<PublicNetwork>;
  /** Reads the network until the condition is true (at most `limit` ms). */
  read(id: number, until?: (network: PublicNetwork) => boolean): Promise<PublicNetwork>;
  /** Waits until the last change of the network is applied. */
  untilApplied(id: number): Promise<PublicNetwork>;
  /** Creates a server in the network and waits until its NIC is connected. Resolves to its port and its address. */
  server(network: number): Promise<ConnectedServer>;
  /** Creates a network with two servers. Its `send` sends a packet from one of them or from outside. */
  networkWithServers(more?: object): Promise<NetworkWithServers>;
  /** Replaces the firewall of a public network. */
  configureFirewall(id: number, body: FirewallInput, options?: ChangeOptions): Promise<PublicNetwork>;
  /** Returns the events of the project since the last call; the first call returns all. */
  newEvents(): Promise<Event[]>;
  /** Waits for an event that `newEvents` has not returned yet. */
  untilEvent(of: (event: Event) => boolean): Promise<void>;
}

interface ConnectedServer {
  /** The link id. */
  readonly port: number;
  readonly address: string;
}

export interface NetworkWithServers {
  readonly id: number;
  readonly one: ConnectedServer;
  readonly two: ConnectedServer;
  /** Returns true if the packet arrives. */
  send(packet: Packet): boolean;
}

/** Returns pointer and code of each entry of `errors`, sorted by pointer. */
export const errorsOf = (text: string): [string, string][] =>
  (JSON.parse(text) as Problem).errors
    .map(({ pointer, code }): [string, string] => [pointer, code])
    .sort(([one], [other]) => (one < other ? -1 : 1));

/** Rules that allow all connections from the network, and web requests to its servers. */
export const allowOut: FirewallRuleInput = {
  Name: "out",
  Action: "Allow",
  Source: "internal",
  Destination: "external",
};
export const allowWeb: FirewallRuleInput = { Name: "web", Action: "Allow", Protocol: "Tcp", DestinationPort: "80,443" };

/** A source address outside of all networks. */
export const outside = "198.51.100.5";
let sourcePort = 20_000;

/** Returns the first packet of a new connection; the default port is 80. */
export const tcp = (source: string, destination: string, destinationPort = 80): Packet => ({
  protocol: 6,
  source,
  sourcePort: sourcePort++,
  destination,
  destinationPort,
});
export const udp = (source: string, destination: string, destinationPort = 53): Packet => ({
  ...tcp(source, destination, destinationPort),
  protocol: 17,
});
export const ping = (source: string, destination: string): Packet => ({
  protocol: source.includes(":") ? 58 : 1,
  source,
  sourcePort: 0,
  destination,
  destinationPort: 0,
});
/** Returns the packet in the other direction. */
export const replyTo = (packet: Packet): Packet => ({
  protocol: packet.protocol,
  source: packet.destination,
  sourcePort: packet.destinationPort,
  destination: packet.source,
  destinationPort: packet.sourcePort,
});

/** Returns true if the network is active, has no error and its last change is applied. */
export const isApplied = ({ State, Generation, AppliedGeneration, Error }: PublicNetwork): boolean =>
  State === "Active" && Generation === AppliedGeneration && Error === null;

/** Asserts that every operation on this public network fails with `public_network_not_found` for this caller. */
export async function assertNotVisible({ client }: Caller, id: number): Promise<void> {
  const path = { id };
  const packet = { Protocol: "Icmp", Source: "192.0.2.1", Destination: "192.0.2.2" } as const;
  for (const send of [
    () => client.readPublicNetwork({ path }),
    () => client.updatePublicNetwork({ path, body: { Name: "mine" } }),
    () => client.configureFirewall({ path, body: {} }),
    () => client.checkFirewall({ path, body: packet }),
    () => client.configureVpn({ path, body: { Tunnels: [] } }),
    () => client.readVpnStatus({ path }),
    () => client.readTunnelPeer({ path: { id, tunnelId: 1 } }),
    () => client.deletePublicNetwork({ path }),
  ])
    await refused(send(), "public_network_not_found");
}

export function createNetworkFixture(harness: Harness, clock: MovableClock, limit = 120_000): NetworkFixture {
  let names = 0;
  let servers = 0;
  let waker: Promise<Caller> | undefined;
  let last = 0;

  /** Wakes the engine, which then runs what is due. It creates and deletes a network in another project, so the tests see no trace. */
  async function wake(): Promise<void> {
    waker ??= harness.neighbour();
    const { client } = await waker;
    const { ID } = await client.createNetwork({ body: { Name: "wake" } });
    await client.deleteNetwork({ path: { id: ID } });
  }

  const readNewEvents = () => harness.client.listEvents({ query: { after: last, limit: 1000 } });

  const fixture: NetworkFixture = {
    async pass(seconds) {
      clock.pass(seconds);
      await wake();
    },
    pollHost: () => fixture.pass(6),
    async network(more = {}) {
      names += 1;
      const made = await harness.client.createPublicNetwork({ body: { Name: `net ${names}`, ...more } }, { wait: 60 });
      assert.ok(isApplied(made), JSON.stringify(made));
      return made;
    },
    read: (id, until = () => true) =>
      harness.client.waitFor("readPublicNetwork", { path: { id } }, { until, timeout: limit }),
    untilApplied: (id) => fixture.read(id, isApplied),
    async server(id) {
      servers += 1;
      const body = { Name: `server ${servers}`, NetworkID: id };
      const { ID, State } = await harness.client.createServer({ body }, { wait: 60 });
      assert.equal(State, "Active");
      const { LinkedServers } = await fixture.untilApplied(id);
      const link = LinkedServers.find(({ ServerID }) => ServerID === ID);
      assert.ok(link);
      return { port: link.LinkID, address: link.IP };
    },
    async networkWithServers(more = {}) {
      const { Id: id } = await fixture.network(more);
      const one = await fixture.server(id);
      const two = await fixture.server(id);
      const send = (packet: Packet) => {
        const sender = [one, two].find(({ address }) => address === packet.source);
        return harness.brume.router.send(id, sender?.port ?? null, packet);
      };
      return { id, one, two, send };
    },
    configureFirewall: (id, body, options = {}) => harness.client.configureFirewall({ path: { id }, body }, options),
    async newEvents() {
      const events = await readNewEvents();
      last = events.at(-1)?.ID ?? last;
      return events;
    },
    async untilEvent(of) {
      await harness.client.waitFor(
        "listEvents",
        { query: { after: last, limit: 1000 } },
        { until: (events) => events.some(of), timeout: limit },
      );
    },
  };
  return fixture;
}

/** Creates the fixture for the tests of a file. After each test the simulated router works again. */
export function useNetworkFixture(harness: Harness, clock: MovableClock): NetworkFixture {
  afterEach(() => {
    harness.brume.router.broken = false;
    harness.brume.router.silent = false;
  });
  return createNetworkFixture(harness, clock);
}
