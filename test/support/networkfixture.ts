/**
 * What the stories of networks share: a clock that can be put forward, servers that are plugged in, and packets. The router is simulated, so that a packet is a call and whatever goes wrong on a machine can be ordered.
 */
import assert from "node:assert/strict";
import type { Problem } from "@brume/api/errors.ts";
import type { Event } from "@brume/api/event.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { refused, type Stage, type Voice } from "./harness.ts";

/** Goes as time does, and ahead of it by what has been passed. */
export interface MovableClock {
  now(): number;
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

export interface Scene {
  /** Lets time pass, and the service see that it has. */
  pass(seconds: number): Promise<void>;
  /** Lets the service look at the machine now instead of within seconds. */
  look(): Promise<void>;
  /** A public network that works, with a name that no other has. */
  network(more?: object): Promise<PublicNetwork>;
  read(id: number, until?: (network: PublicNetwork) => boolean): Promise<PublicNetwork>;
  /** Waits until packets obey the network's last change. */
  settled(id: number): Promise<PublicNetwork>;
  /** A server in the network, which is plugged in when this comes back. Resolves to its port and its address. */
  server(network: number): Promise<Seat>;
  /** A network with two servers, and what becomes of a packet that one of them or somebody outside sends. */
  place(more?: object): Promise<Place>;
  /** Events of the project after the last call of this, or from its first. */
  response(): Promise<Event[]>;
  /** Waits for an event that has not been `heard`. */
  hears(of: (event: Event) => boolean): Promise<void>;
}

interface Seat {
  readonly port: number;
  readonly address: string;
}

export interface Place {
  readonly id: number;
  readonly one: Seat;
  readonly two: Seat;
  /** Whether it arrives. */
  send(packet: Packet): boolean;
}

/** Pointer and code of what is to blame, in the order of pointers. */
export const errorsOf = (text: string): [string, string][] =>
  (JSON.parse(text) as Problem).errors
    .map(({ pointer, code }): [string, string] => [pointer, code])
    .sort(([one], [other]) => (one < other ? -1 : 1));

export const outside = "198.51.100.5";
let sourcePort = 20_000;

/** The first of a connection of its own, to port 80 unless said otherwise. */
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
export const answerTo = (packet: Packet): Packet => ({
  protocol: packet.protocol,
  source: packet.destination,
  sourcePort: packet.destinationPort,
  destination: packet.source,
  destinationPort: packet.sourcePort,
});

export const calm = ({ State, Generation, AppliedGeneration, Error }: PublicNetwork): boolean =>
  State === "Active" && Generation === AppliedGeneration && Error === null;

/** To this voice there is no such public network, whatever is asked of it. */
export async function holdNowhere({ client }: Voice, id: number): Promise<void> {
  const path = { id };
  const question = { Protocol: "Icmp", Source: "192.0.2.1", Destination: "192.0.2.2" } as const;
  for (const ask of [
    () => client.readPublicNetwork({ path }),
    () => client.updatePublicNetwork({ path, body: { Name: "mine" } }),
    () => client.configureFirewall({ path, body: {} }),
    () => client.checkFirewall({ path, body: question }),
    () => client.configureVpn({ path, body: { Tunnels: [] } }),
    () => client.readVpnStatus({ path }),
    () => client.readTunnelPeer({ path: { id, tunnelId: 1 } }),
    () => client.deletePublicNetwork({ path }),
  ])
    await refused(ask(), "public_network_not_found");
}

export function createScene(stage: Stage, clock: MovableClock, limit = 20_000): Scene {
  let names = 0;
  let servers = 0;
  let bell: Promise<Voice> | undefined;
  let last = 0;

  /** Any wish wakes the engine, which then finds what the clock has made due; this one is nobody's here. */
  async function ring(): Promise<void> {
    bell ??= stage.neighbour();
    const { client } = await bell;
    const { ID } = await client.createNetwork({ body: { Name: "bell" } });
    await client.deleteNetwork({ path: { id: ID } });
  }

  const newEvents = () => stage.client.listEvents({ query: { after: last, limit: 1000 } });

  const scene: Scene = {
    async pass(seconds) {
      clock.pass(seconds);
      await ring();
    },
    look: () => scene.pass(6),
    async network(more = {}) {
      names += 1;
      const made = await stage.client.createPublicNetwork({ body: { Name: `net ${names}`, ...more } }, { wait: 20 });
      assert.ok(calm(made), JSON.stringify(made));
      return made;
    },
    read: (id, until = () => true) =>
      stage.client.waitFor("readPublicNetwork", { path: { id } }, { until, timeout: limit }),
    settled: (id) => scene.read(id, calm),
    async server(id) {
      servers += 1;
      const body = { Name: `server ${servers}`, NetworkID: id };
      const { ID, State } = await stage.client.createServer({ body }, { wait: 20 });
      assert.equal(State, "Active");
      const { LinkedServers } = await scene.settled(id);
      const link = LinkedServers.find(({ ServerID }) => ServerID === ID);
      assert.ok(link);
      return { port: link.LinkID, address: link.IP };
    },
    async place(more = {}) {
      const { Id: id } = await scene.network(more);
      const one = await scene.server(id);
      const two = await scene.server(id);
      const send = (packet: Packet) => {
        const sender = [one, two].find(({ address }) => address === packet.source);
        return stage.world.router.send(id, sender?.port ?? null, packet);
      };
      return { id, one, two, send };
    },
    async response() {
      const events = await newEvents();
      last = events.at(-1)?.ID ?? last;
      return events;
    },
    async hears(of) {
      await stage.client.waitFor(
        "listEvents",
        { query: { after: last, limit: 1000 } },
        { until: (events) => events.some(of), timeout: limit },
      );
    },
  };
  return scene;
}
