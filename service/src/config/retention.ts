/** How long and how many rows the tables that grow with use are kept: defaults, and the setting `BRUME_KEEP`. */
import { ConfigError, parseList } from "./value.ts";

/** Retention of each table that grows with use. `BRUME_KEEP` changes it. */
export const defaultKeep = {
  event: { days: 30, count: 1_000_000 },
  audit: { days: 365, count: 1_000_000 },
  refusal: { days: 90, count: 100_000 },
  key: { days: 1, count: 1_000_000 },
  task: { days: 90, count: 100_000 },
  version: { days: 90, count: 10_000 },
  zone: { days: 1, count: 1_000_000 },
  claim: { days: 90, count: 10_000 },
  withdrawn: { days: 365, count: 10_000 },
  delivery: { days: 30, count: 100_000 },
  deleted: { days: 3650, count: 100_000 },
} as const satisfies Record<string, { readonly days: number; readonly count: number }>;

/** Days and rows for each table that grows with use, by the name in `BRUME_KEEP`. */
export type Keep = Readonly<Record<keyof typeof defaultKeep, { readonly days: number; readonly count: number }>>;

/** Parses `BRUME_KEEP`, such as `event:30/1000000,audit:365/1000000`: days and rows of each named table. */
export function parseKeep(value: string): Keep {
  const keep: Record<string, Keep[keyof Keep]> = { ...defaultKeep };
  for (const item of parseList(value)) {
    const [, name = "", days, count] = /^([a-z]+):([1-9]\d{0,4})\/([1-9]\d{0,8})$/.exec(item) ?? [];
    if (!Object.hasOwn(defaultKeep, name))
      throw new ConfigError(
        "BRUME_KEEP",
        `NAME:DAYS/COUNT with commas, NAME one of ${Object.keys(defaultKeep).join(", ")}`,
        item,
      );
    keep[name] = { days: Number(days), count: Number(count) };
  }
  return keep as unknown as Keep;
}
