/**
 * Figures for Prometheus (text version 0.0.4): how long requests of each operation take, how many run, how late the event
 * loop is. What costs something is read when somebody asks; a request pays one observation on a series found beforehand.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Registry } from "prom-client";
import { createDurations } from "./durations.ts";

/** Notes requests of one operation. */
export type Timer = (status: number, seconds: number) => void;

export interface Metrics {
  readonly registry: Registry;
  /** Make one per operation and keep it. */
  timer(operation: string): Timer;
  text(): Promise<string>;
  close(): void;
}

/** What only the server knows when it is asked. */
export interface Figures {
  running(): number;
  streams(): number;
}

/** Other rooms put figures of their own into `registry`. */
export function createMetrics(figures: Figures, registry = new Registry()): Metrics {
  const registers: never[] = [];
  const durations = createDurations("brume_http_request_duration_seconds", "Time from a request's head to its answer.");
  registry.registerMetric(durations.metric);
  const lag = monitorEventLoopDelay({ resolution: 50 });
  lag.enable();

  const gauge = (name: string, help: string, read: () => number): void => {
    const collect = function (this: Gauge): void {
      this.set(read());
    };
    registry.registerMetric(new Gauge({ name, help, registers, collect }));
  };
  gauge("brume_http_requests_running", "Requests that are not answered yet.", figures.running);
  gauge("brume_http_event_streams", "Open event streams.", figures.streams);
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  gauge("process_start_time_seconds", "Start of the process since 1970.", () => performance.timeOrigin / 1000);
  const time = new Counter({
    name: "process_cpu_seconds_total",
    help: "User and system time.",
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  registry.registerMetric(time);
  const late = new Gauge({
    name: "brume_event_loop_lag_seconds",
    help: "How late the event loop was since the last look.",
    labelNames: ["quantile"] as const,
    registers,
    collect() {
      // The monitor reports the whole time between two of its ticks, so its own period is taken off.
      const seconds = (nanoseconds: number) => (lag.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - 0.05));
      this.set({ quantile: "0.5" }, seconds(lag.percentile(50)));
      this.set({ quantile: "0.99" }, seconds(lag.percentile(99)));
      this.set({ quantile: "1" }, seconds(lag.max));
      lag.reset();
    },
  });
  registry.registerMetric(late);

  return {
    registry,
    timer(operation) {
      const byStatus = new Map<number, (seconds: number) => void>();
      return (status, seconds) => {
        let observe = byStatus.get(status);
        if (observe === undefined) {
          observe = durations.series({ operation, status: String(status) });
          byStatus.set(status, observe);
        }
        observe(seconds);
      };
    },
    text: () => registry.metrics(),
    close() {
      lag.disable();
    },
  };
}
