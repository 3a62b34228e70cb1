/** The log for operators: one line of JSON on standard error per event. It never contains secrets, and reports each event once. */
import { pino } from "pino";

/** Writes one line. `detail` is structured data; its property `error` is an `Error`. */
export type Log = (level: "debug" | "info" | "warn" | "error", message: string, detail?: object) => void;

/** Creates a log that writes lines of at least this level. `process` is in each line and identifies one of several processes. */
export function createLog(level: "debug" | "info" | "warn" | "error", process?: string): Log {
  const logger = pino(
    {
      level,
      base: process === undefined ? null : { process },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { error: pino.stdSerializers.err },
    },
    pino.destination({ dest: 2, sync: true }),
  );
  return (wanted, message, detail) =>
    detail === undefined ? logger[wanted](message) : logger[wanted](detail, message);
}

/** A log without output, for tests. */
export const silentLog: Log = () => {};
