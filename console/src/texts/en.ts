/** All texts of the console in English. `ru.ts` has the same keys: the compiler reports a missing one. */
import { access } from "./en/access.ts";
import { dns } from "./en/dns.ts";
import { fields } from "./en/fields.ts";
import { networks } from "./en/networks.ts";
import { operate } from "./en/operate.ts";
import { servers } from "./en/servers.ts";
import { shell } from "./en/shell.ts";

export const en = { ...shell, ...servers, ...networks, ...dns, ...access, ...operate, fields };

/** The texts of a language. */
export type Texts = typeof en;
