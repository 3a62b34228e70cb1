/** Writes results in the form that the user selected. `json` and `yaml` are the responses of the API, unchanged. */
import type { ServerMetrics } from "@brume/api/monitor.ts";
import type { Host } from "../host.ts";
import type { Options } from "../model/options.ts";
import { type Row, textOf } from "./columns.ts";
import { formatMetrics } from "./metrics.ts";
import { createStyle, type Style, safe } from "./style.ts";
import { formatObject, formatTable } from "./table.ts";

/** Writes results and messages. */
export interface Printer {
  readonly style: Style;
  /** Writes the response of an operation. `title`: of the object in the contract. `isDetail`: all fields of one object. */
  result(value: unknown, title: string, isDetail: boolean): Promise<void>;
  /** Writes lines for people; with `--quiet` nothing. */
  lines(lines: readonly string[]): void;
  /** Writes a message beside the result, to standard error. */
  note(text: string): void;
}

/** Returns the name of an object, as other commands accept it. */
function nameOf(row: Row): string {
  const name = row["Name"] ?? row["Title"] ?? row["Url"] ?? row["TechTitle"];
  return textOf(name) || textOf(row["ID"] ?? row["Id"] ?? row["Serial"]);
}

/** Creates the printer of a call. */
export function createPrinter(host: Host, options: Options): Printer {
  const { out, err, env } = host;
  const style = createStyle(options.color ?? (out.isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb"));
  const write = (lines: readonly string[]) => lines.length > 0 && out.write(`${lines.join("\n")}\n`);

  /** Returns the lines for people and for other commands. */
  function linesOf(value: object, title: string, isDetail: boolean): string[] {
    const rows = (Array.isArray(value) ? value : [value]) as Row[];
    if (rows.some((row) => typeof row !== "object")) return rows.map(String);
    if (options.output === "name") return rows.map((row) => safe(title === "Record" ? textOf(row["ID"]) : nameOf(row)));
    if (title === "ServerMetrics") return formatMetrics(value as ServerMetrics);
    if (isDetail && !Array.isArray(value)) return formatObject(value as Row, style);
    return rows.length > 0 ? formatTable(rows, title, options.output === "wide", style) : [];
  }

  async function format(value: unknown, title: string, isDetail: boolean): Promise<string> {
    if (options.output === "json") return `${JSON.stringify(value, null, 2)}\n`;
    if (options.output === "yaml") return (await import("yaml")).stringify(value, { lineWidth: 0 });
    if (typeof value !== "object" || value === null) return textOf(value).replace(/\n?$/, "\n");
    return linesOf(value, title, isDetail)
      .map((line) => `${line}\n`)
      .join("");
  }

  return {
    style,
    lines(lines) {
      if (!options.quiet) write(lines);
    },
    note(text) {
      if (!options.quiet) err.write(`${text}\n`);
    },
    async result(value, title, isDetail) {
      if (options.quiet || value === undefined || value === null) return;
      const text = await format(value, title, isDetail);
      if (text !== "") out.write(text);
      else if (out.isTerminal) err.write(`${style.dim("None.")}\n`);
    },
  };
}
