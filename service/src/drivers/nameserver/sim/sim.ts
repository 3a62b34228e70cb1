/**
 * The simulated name server: the same zones and responses without sockets and thread, for tests and for hosts where it must not listen.
 * Tests send queries through `answer`.
 */

import { clientAt } from "../answer/ratelimit.ts";
import { createResponder } from "../answer/responder.ts";
import { zoneStatus } from "../builtin/builtin.ts";
import { applyBatch, createBatch } from "../builtin/change.ts";
import { createZones } from "../builtin/zones.ts";
import type { Nameserver } from "../interface.ts";
import { nameOf, textOf } from "../wire/name.ts";

/** A name server with a method for tests. */
export interface SimulatedNameserver extends Nameserver {
  /** Returns the response to a UDP packet, or null if none is sent. The packet is not changed. */
  answer(packet: Uint8Array): Buffer | null;
}

/** Creates a simulated name server. `now` returns milliseconds since 1970. */
export function createSim(now: () => number): SimulatedNameserver {
  const zones = createZones();
  const batch = createBatch();
  let running = true;
  const responder = createResponder({
    zones,
    limiter: null,
    limitLoopback: false,
    keys: new Map(),
    mayTransfer: () => false,
    now,
    error(error) {
      throw error;
    },
  });

  return {
    async publish(changes) {
      if (!running) throw new Error("the name server is not running: closed");
      batch.add(changes);
      const served: number[] = [];
      for (const _ of applyBatch(zones, batch.take(), served)) continue;
      return served;
    },
    async withdraw(zone, serial) {
      if (!running) throw new Error("the name server is not running: closed");
      zones.withdraw(nameOf(zone), serial);
    },
    async loaded() {
      if (!running) throw new Error("the name server is not running: closed");
    },
    saved: async () => null,
    async adopt() {},
    async save() {},
    async observe() {
      const all = [...zones.all()].map((zone) => zoneStatus(textOf(zone.name), zone.authority.serial, zone.counts));
      return {
        ready: running,
        address: "simulated:0",
        detail: "simulated",
        zones: running ? all : [],
        secondaries: [],
        p99: 0,
      };
    },
    onStart(listener) {
      setImmediate(() => running && listener());
    },
    async close() {
      running = false;
    },
    answer(packet) {
      if (!running) return null;
      const buffer = Buffer.alloc(0xffff);
      buffer.set(packet);
      const size = responder.udp(buffer, packet.length, clientAt("127.0.0.1"));
      return size === 0 ? null : buffer.subarray(0, size);
    },
  };
}
