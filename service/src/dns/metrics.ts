/** The name server's own figures for Prometheus, looked at once in a while and shown as last seen. */
import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, Registry } from "prom-client";
import type { Nameserver, NameserverStatus } from "../drivers/nameserver/interface.ts";

/** Milliseconds. */
const patience = 1000;

export interface DnsMetrics {
  readonly registry: Registry;
  last(): NameserverStatus;
  look(): Promise<void>;
}

const unseen: NameserverStatus = {
  ready: false,
  address: "",
  detail: "not looked at yet",
  zones: [],
  secondaries: [],
  p99: 0,
};

export function dnsMetrics(nameserver: Nameserver): DnsMetrics {
  const registry = new Registry();
  let seen = unseen;
  /** Whoever asks while somebody looks sees the same. */
  let looking: Promise<NameserverStatus> | null = null;
  const figures = [
    new Gauge({
      name: "brume_dns_zones",
      help: "Zones served.",
      registers: [],
      collect() {
        this.set(seen.zones.length);
      },
    }),
    new Gauge({
      name: "brume_dns_answer_seconds_p99",
      help: "From packet to answer, 99th percentile of the last minute.",
      registers: [],
      collect() {
        this.set(seen.p99 / 1e6);
      },
    }),
    new Gauge({
      name: "brume_dns_zone_serial",
      help: "Serial served.",
      labelNames: ["zone"],
      registers: [],
      collect() {
        this.reset();
        for (const { zone, serial } of seen.zones) this.set({ zone }, serial);
      },
    }),
    new Counter({
      name: "brume_dns_queries_total",
      help: "Queries by zone.",
      labelNames: ["zone"],
      registers: [],
      collect() {
        this.reset();
        for (const { zone, queries } of seen.zones) this.inc({ zone }, queries);
      },
    }),
    new Counter({
      name: "brume_dns_answers_total",
      help: "Answers by zone and response code.",
      labelNames: ["zone", "rcode"],
      registers: [],
      collect() {
        this.reset();
        for (const { zone, rcodes } of seen.zones)
          for (const [rcode, count] of Object.entries(rcodes)) this.inc({ zone, rcode }, count);
      },
    }),
  ];
  const secondaries = [
    new Gauge<"secondary" | "zone">({
      name: "brume_dns_secondary_reachable",
      help: "1: the secondary answered last; 0: it did not; absent: it was not asked yet.",
      labelNames: ["secondary"],
      registers: [],
      collect() {
        this.reset();
        for (const { address, reachable } of seen.secondaries)
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
        for (const { address, behind } of seen.secondaries) this.set({ secondary: address }, behind);
      },
    }),
    new Gauge<"secondary" | "zone">({
      name: "brume_dns_secondary_lag_seconds",
      help: "Since when the secondary has not confirmed the oldest of these.",
      labelNames: ["secondary"],
      registers: [],
      collect() {
        this.reset();
        for (const { address, lag } of seen.secondaries) this.set({ secondary: address }, lag);
      },
    }),
    new Gauge<"secondary" | "zone">({
      name: "brume_dns_secondary_serial",
      help: "Last serial that the secondary confirmed.",
      labelNames: ["secondary", "zone"],
      registers: [],
      collect() {
        this.reset();
        for (const { address, serials } of seen.secondaries)
          for (const [zone, serial] of serials) this.set({ secondary: address, zone }, serial);
      },
    }),
  ];
  for (const figure of figures) registry.registerMetric(figure);
  for (const figure of secondaries) registry.registerMetric(figure);
  return {
    registry,
    last: () => seen,
    async look() {
      looking ??= nameserver.observe().finally(() => {
        looking = null;
      });
      const silence = new AbortController();
      const silent = sleep(patience, null, { signal: silence.signal }).catch(() => null);
      const answer = await Promise.race([looking, silent]);
      silence.abort();
      seen = answer ?? { ...seen, ready: false, detail: `no answer within ${patience} ms` };
    },
  };
}
