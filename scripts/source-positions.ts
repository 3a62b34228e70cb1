/**
 * Makes stack traces name the sources instead of the bundle. `build-service.ts` puts it first into each program and thread. A source map is
 * read when the first error needs it: Node's option `--enable-source-maps` reads all at the start, which takes 0.2 s of processor time.
 */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { fileURLToPath } from "node:url";

const maps = new Map<string, SourceMap | null>();

function readMap(file: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${file}.map`), "utf8")) as SourceMapPayload);
  } catch {
    return null;
  }
}

/** Returns the position in the source, or the given one. */
function findSource(position: string, file: string, line: string, column: string): string {
  let map = maps.get(file);
  if (map === undefined) {
    map = readMap(file);
    maps.set(file, map);
  }
  const entry = map?.findEntry(Number(line) - 1, Number(column) - 1);
  if (entry === undefined || !("originalSource" in entry)) return position;
  return `${new URL(entry.originalSource, file).href}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
}

const folder = new URL(".", import.meta.url).href;

/** A call in a stack; its text is a line of the trace. */
interface Call {
  toString(): string;
}

Error.prepareStackTrace = (error, calls: readonly Call[]) => {
  const lines = calls.map((call) => {
    const line = call.toString();
    return line.includes(folder) ? line.replace(/(file:\/\/[^()\s]+\.js):(\d+):(\d+)/, findSource) : line;
  });
  return [String(error), ...lines].join("\n    at ");
};
