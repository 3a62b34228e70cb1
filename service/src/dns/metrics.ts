/** Prometheus metrics of the name server. The caller refreshes them periodically; a scrape returns the last values. */

import { Counter, Gauge, Registry } from "prom-client";
import { reasonOf } from "../base/reason.ts";
import { within } from "../base/within.ts";
import type { Nameserver, NameserverStatus } from "../drivers/nameserver/interface.ts";

/** Timeout of a read in ms. */
const timeout = 1000;

/** The registry, and the status that its values come from. */
export interface DnsMetrics {
  readonly registry: Registry;
  /** Returns the last status. */
  last(): NameserverStatus;
  /** Reads the status from the name server; not ready if it does not respond in time. */
  refresh(): Promise<void>;
}

const initial: NameserverStatus = {
  ready: false,
  address: "",
  detail: "not checked yet",
  zones: [],
  secondaries: [],
  p99: 0,
};

export function dnsMetrics(nameserver: Nameserver): DnsMetrics {
  const registry = new Registry();
  let status = initial;
  /** The read in progress, shared by concurrent calls. */
  let reading: Promise<NameserverStatus> | null = null;
  const figures = [
    new Gauge({
      name: "brume_dns_zones",
      help: "Zones served.",
      registers: [],
      collect() {
        this.set(status.zones.length);
      },
    }),
    new Gauge({
      name: "brume_dns_answer_seconds_p99",
      help: "From packet to answer, 99th percentile of the last minute.",
      registers: [],
      collect() {
        this.set(status.p99 / 1e6);
      },
    }),
    new Gauge({
      name: "brume_dns_zone_serial",
      help: "Serial served.",
      labelNames: ["zone"],
      registers: [],
      collect() {
        this.reset();
        for (const { zone, serial } of status.zones) this.set({ zone }, serial);
      },
    }),
    new Counter({
      name: "brume_dns_queries_total",
      help: "Queries by zone.",
      labelNames: ["zone"],
      registers: [],
      collect() {
        this.reset();
        for (const { zone, queries } of status.zones) this.inc({ zone }, queries);
      },
    }),
    new Counter({
      name: "brume_dns_answers_total",
      help: "Answers by zone and response code.",
      labelNames: ["zone", "rcode"],
      registers: [],
      collect() {
        this.reset();
        for (const { zone, rcodes } of status.zones)
          for (const [rcode, count] of Object.entries(rcodes)) this.inc({ zone, rcode }, count);
      },
    }),
  ];
  const secondaries = [
    new Gauge<"secondary" | "zone">({
      name: "brume_dns_secondary_reachable",
      help: "1: the secondary answered last; 0: it did not; absent: it was not queried yet.",
      labelNames: ["secondary"],
      registers: [],
      collect() {
        this.reset();
        for (const { address, reachable } of status.secondaries)
          if (reachable !== null) this.set({ secondary: address }, Number(reachable));
      },
    }),
    new Gauge<"secondary" | "zone">({
      name: "brume_dns_secondary_behind_zones",
      help: "Zones whose serial the secondary has not confirmed, the catalog included.",
      labelNames: ["secondary"],
      registers: [],
      collect() {
        this.reset();
        for (const { address, behind } of status.secondaries) this.set({ secondary: address }, behind);
      },
    }),
    new Gauge<"secondary" | "zone">({
      name: "brume_dns_secondary_lag_seconds",
      help: "Since when the secondary has not confirmed the oldest of these.",
      labelNames: ["secondary"],
      registers: [],
      collect() {
        this.reset();
        for (const { address, lag } of status.secondaries) this.set({ secondary: address }, lag);
      },
    }),
    new Gauge<"secondary" | "zone">({
      name: "brume_dns_secondary_serial",
      help: "Last serial that the secondary confirmed.",
      labelNames: ["secondary", "zone"],
      registers: [],
      collect() {
        this.reset();
        for (const { address, serials } of status.secondaries)
          for (const [zone, serial] of serials) this.set({ secondary: address, zone }, serial);
      },
    }),
  ];
  for (const figure of figures) registry.registerMetric(figure);
  for (const figure of secondaries) registry.registerMetric(figure);
  return {
    registry,
    last: () => status,
    async refresh() {
      reading ??= nameserver.observe().finally(() => {
        reading = null;
      });
      const failed = (detail: string): NameserverStatus => ({ ...status, ready: false, detail });
      const read = reading.catch((error: unknown) => failed(`the name server failed: ${reasonOf(error)}`));
      status = await within(read, timeout, failed(`no response within ${timeout} ms`));
    },
  };
}
