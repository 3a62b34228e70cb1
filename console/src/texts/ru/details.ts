/** Translates the details of errors into Russian. They come from the service in English (docs/console.md#where-a-change-goes). */
import { createTranslator } from "../translate.ts";
import { access } from "./details/access.ts";
import { checks } from "./details/checks.ts";
import { imports } from "./details/imports.ts";
import { networks } from "./details/networks.ts";
import { requests } from "./details/requests.ts";
import { servers } from "./details/servers.ts";
import { tunnels } from "./details/tunnels.ts";
import { zones } from "./details/zones.ts";

const tables = [requests, access, checks, imports, servers, networks, tunnels, zones];

export const details = {
  sentences: tables.flatMap(({ sentences }) => sentences),
  phrases: tables.flatMap(({ phrases }) => phrases),
};

export const translateDetail = createTranslator(details);
