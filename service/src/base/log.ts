/** What the service tells the people who run it: one line of JSON on standard error per thing worth knowing. Never a secret, never twice. */
import { pino } from "pino";

/** `detail` is data beside the sentence; an error goes in as `error`. */
export type Log = (level: "debug" | "info" | "warn" | "error", message: string, detail?: object) => void;

export function createLog(level: "debug" | "info" | "warn" | "error"): Log {
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { error: pino.stdSerializers.err } },
    pino.destination({ dest: 2, sync: true }),
  );
  return (wanted, message, detail) =>
    detail === undefined ? logger[wanted](message) : logger[wanted](detail, message);
}

/** For tests that do not look at the log. */
export const silentLog: Log = () => {};
