/** All texts of the console in Russian. */
import type { Texts } from "./en.ts";
import { access } from "./ru/access.ts";
import { dns } from "./ru/dns.ts";
import { fields } from "./ru/fields.ts";
import { networks } from "./ru/networks.ts";
import { operate } from "./ru/operate.ts";
import { servers } from "./ru/servers.ts";
import { shell } from "./ru/shell.ts";

export const ru: Texts = { ...shell, ...servers, ...networks, ...dns, ...access, ...operate, fields };
