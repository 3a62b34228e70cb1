/** The settings of the service, which the operator of the host writes to `brume.toml` or to variables. */
import type { Static } from "typebox";
import { boolean, id, list, listQuery, nameFilter, nullable, object, text, word } from "./common.ts";
import { operations } from "./operation.ts";

/** Values of `Source`. */
export const settingSources = ["Default", "File", "Variable"] as const;

/** A setting of the service with the value in effect. */
export const Setting = object("Setting", "A setting of the service with the value in effect.", {
  ID: id({ description: "Position in the reference." }),
  Name: text({ description: "Key in the file `brume.toml`." }),
  Variable: text({ description: "Name of the variable, which wins over the file." }),
  Value: nullable(
    text({ description: "Value in effect. `null`: none, or it is hidden, as secrets and paths of the host are." }),
  ),
  IsSet: boolean({ description: "`true`: the operator has set it. `false`: the default is in effect." }),
  IsHidden: boolean({ description: "`true`: a value that the operator has set is never shown." }),
  Default: nullable(text({ description: "Value without a setting, or what applies then. `null`: none." })),
  Unit: text({ description: "Unit of the value; empty: none." }),
  Source: word(settingSources, { description: "Where the value in effect comes from." }),
  Place: nullable(text({ description: "Line of the file that sets it. `null`: no file does." })),
  NeedsRestart: boolean({ description: "`true`: a change takes effect at the next start of the service." }),
  Description: text({ description: "Meaning of the setting." }),
});
/** TypeScript type of this schema. */
export type Setting = Static<typeof Setting>;

/** Operations on the settings of the service. */
export const settingOperations = operations({
  listSettings: {
    method: "GET",
    path: "/setting",
    access: "account:admin",
    summary: "List the settings of the service",
    description:
      "Returns the values in effect, also defaults. Only the operator of the host changes them; secrets and paths of the host are not shown.",
    query: listQuery({ name: nameFilter }),
    answer: list(Setting),
    list: true,
  },
});
