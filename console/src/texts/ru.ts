/** All texts of the console in Russian. */
import type { Texts } from "./en.ts";
import { access } from "./ru/access.ts";
import { dns } from "./ru/dns.ts";
import { servers } from "./ru/servers.ts";
import { shell } from "./ru/shell.ts";

export const ru: Texts = { ...shell, ...servers, ...dns, ...access };
