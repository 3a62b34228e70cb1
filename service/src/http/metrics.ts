/**
 * Metrics for Prometheus (text version 0.0.4): durations of requests by operation, running requests, and the lag of the event loop.
 * Expensive values are read only when `/metrics` is requested. A request costs one observation on a prepared series.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Registry } from "prom-client";
import { createDurations } from "./durations.ts";

/** Records the duration of a request of one operation. */
export type Timer = (status: number, seconds: number) => void;

/** The metrics of the service. */
export interface Metrics {
  readonly registry: Registry;
  /** Creates the timer of an operation. Call once per operation. */
  timer(operation: string): Timer;
  /** Resolves to the text of `/metrics`. */
  text(): Promise<string>;
  /** Stops the measurement of the event loop. */
  close(): void;
}

/** Current values of the HTTP server. */
export interface CurrentValues {
  /** Running requests. */
  running(): number;
  /** Open event streams. */
  streams(): number;
}

/** Creates the metrics. Other modules add theirs to `registry`. */
export function createMetrics(values: CurrentValues, registry = new Registry()): Metrics {
  const registers: never[] = [];
  const durations = createDurations(
    "brume_http_request_duration_seconds",
    "Time from the head of a request to its response.",
  );
  registry.registerMetric(durations.metric);
  const lag = monitorEventLoopDelay({ resolution: 50 });
  lag.enable();

  const gauge = (name: string, help: string, read: () => number): void => {
    const collect = function (this: Gauge): void {
      this.set(read());
    };
    registry.registerMetric(new Gauge({ name, help, registers, collect }));
  };
  gauge("brume_http_requests_running", "Requests without a response yet.", values.running);
  gauge("brume_http_event_streams", "Open event streams.", values.streams);
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
    help: "How late the event loop was since the last read.",
    labelNames: ["quantile"] as const,
    registers,
    collect() {
      // The monitor reports the time between two of its ticks, so its period (50 ms) is subtracted.
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
