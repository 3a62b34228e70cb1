/** Tables and lists of fields for people. */
import { type Column, columnsOf, plainColumns, type Row } from "./columns.ts";
import { paintState, type Style, safe, widthOf } from "./style.ts";

/** Returns a value as one short text. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string")
    return safe(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? value.slice(0, 16).replace("T", " ") : value);
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) {
    if (value.length === 0) return "-";
    return value.every((one) => typeof one !== "object") ? safe(value.join(",")) : String(value.length);
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return "-";
  return safe(entries.map(([key, one]) => `${key}=${cell(one)}`).join(","));
}

const valueOf = ({ value }: Column, row: Row): unknown => (typeof value === "string" ? row[value] : value(row));

/** Aligns rows of texts in columns, two blanks apart. Nothing follows the last column. */
export function align(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, text] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, widthOf(text));
  return rows.map((row) =>
    row
      .map((text, index) =>
        index === row.length - 1 ? text : text + " ".repeat((widths[index] ?? 0) - widthOf(text) + 2),
      )
      .join("")
      .trimEnd(),
  );
}

/** Returns a table with headers. */
export function formatTable(rows: readonly Row[], title: string, isWide: boolean, style: Style): string[] {
  const [first] = rows;
  const all = columnsOf[title] ?? (first ? plainColumns(first) : []);
  const shown = all.filter(({ wide }) => isWide || wide !== true);
  const lines = rows.map((row) => shown.map((column) => paintState(cell(valueOf(column, row)), style)));
  return align([shown.map(({ header }) => style.bold(header)), ...lines]);
}

/** Returns the fields of an object, one per line; objects inside are indented. */
export function formatObject(row: Row, style: Style, indent = ""): string[] {
  const lines: string[] = [];
  const width = Math.max(...Object.keys(row).map((name) => name.length), 0);
  for (const [name, value] of Object.entries(row)) {
    const label = `${indent}${style.bold(`${name}:`)}`;
    const isList = Array.isArray(value) && value.some((one) => typeof one === "object" && one !== null);
    if (isList)
      for (const [index, one] of (value as Row[]).entries())
        lines.push(`${indent}${style.bold(`${name} ${index + 1}:`)}`, ...formatObject(one, style, `${indent}  `));
    else if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0)
      lines.push(label, ...formatObject(value as Row, style, `${indent}  `));
    else if (typeof value === "string" && value.startsWith("<svg"))
      lines.push(`${label}${" ".repeat(width - name.length + 1)}an SVG picture, shown by --output json`);
    else if (typeof value === "string" && value.trimEnd().includes("\n"))
      lines.push(
        label,
        ...safe(value)
          .trimEnd()
          .split("\n")
          .map((line) => `${indent}  ${line}`),
      );
    else lines.push(`${label}${" ".repeat(width - name.length + 1)}${paintState(cell(value), style)}`);
  }
  return lines;
}
