/** Parses units of systemd: sections of `Key=value` lines; a key may occur several times. */

/** Values by section and key. */
export type Unit = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/** Throws if a line is neither a section, a comment nor an assignment. */
export function parseUnit(text: string): Unit {
  const unit: Record<string, Record<string, string[]>> = {};
  let section: Record<string, string[]> | undefined;
  for (const line of text.split("\n")) {
    if (line.trim() === "" || /^[#;]/.test(line)) continue;
    const [, name] = /^\[(\w+)\]$/.exec(line) ?? [];
    if (name !== undefined) {
      section = {};
      unit[name] = section;
      continue;
    }
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (key === undefined || value === undefined || section === undefined)
      throw new Error(`not a line of a unit: ${line}`);
    (section[key] ??= []).push(value);
  }
  return unit;
}
