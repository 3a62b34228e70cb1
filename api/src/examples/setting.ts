/** A setting of the file `brume.toml`. */
import type { Setting } from "../setting.ts";
import type { Examples } from "./example.ts";

const setting: Setting = {
  ID: 17,
  Name: "dns_query_limit",
  Variable: "BRUME_DNS_QUERY_LIMIT",
  Value: "50000",
  IsSet: true,
  IsHidden: false,
  Default: "20000",
  Unit: "queries/s",
  Source: "File",
  Place: "brume.toml:9",
  NeedsRestart: true,
  Description: "limit of queries over UDP from one /24 or /56",
};

/** Examples of the operations on settings. */
export const settingExamples: Examples = { listSettings: { answer: [setting] } };
