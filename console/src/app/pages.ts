import type { FirstRead } from "../data/firstreads.ts";

/** The modules of the pages, by the path of their address. Each is a chunk, which is loaded when its page is opened. */
export const pages = {
  "/servers": () => import("../features/servers/list.tsx"),
  "/servers/create": () => import("../features/servers/create.tsx"),
  "/servers/$id": () => import("../features/servers/detail.tsx"),
  "/networks": () => import("../features/networks/networks.tsx"),
  "/networks/$id": () => import("../features/networks/detail.tsx"),
  "/networks/private/$id": () => import("../features/networks/privatedetail.tsx"),
  "/dns": () => import("../features/dns/frame.tsx"),
  "/dns/$id": () => import("../features/dns/detail.tsx"),
  "/images": () => import("../features/images/list.tsx"),
  "/activity": () => import("../features/activity/frame.tsx"),
  "/activity/": () => import("../features/activity/events.tsx"),
  "/activity/audit": () => import("../features/audit/list.tsx"),
  "/activity/webhooks": () => import("../features/webhooks/list.tsx"),
  "/activity/webhooks/$id": () => import("../features/webhooks/detail.tsx"),
  "/host": () => import("../features/host/host.tsx"),
  "/access": () => import("../features/access/access.tsx"),
};

const servers: FirstRead = { address: "/server?limit=1000", scope: "server:read" };
const images: FirstRead = { address: "/image", scope: "server:read" };
const networks: FirstRead = { address: "/publicnetwork", scope: "network:read" };
const domains: FirstRead = { address: "/dns?limit=1000&records=false", scope: "dns:read" };

/** What pages read when they open, by path. Without an entry here, a page reads it only after its script has arrived. */
const reads: Readonly<Record<string, (id: string) => readonly FirstRead[]>> = {
  "": () => [servers, domains, { address: "/dcLocation", scope: "server:read" }, { address: "/readyz" }],
  "/servers": () => [servers, images],
  "/servers/$id": (id) => [{ address: `/server/${id}`, scope: "server:read" }, images],
  "/networks/$id": (id) => [{ address: `/publicnetwork/${id}`, scope: "network:read" }],
  "/dns": () => [domains],
  "/dns/$id": (id) => [{ address: `/dns/${id}`, scope: "dns:read" }],
  "/images": () => [images],
};

/** Returns the pattern of a path below `/console`, and the id in it. */
function patternOf(path: string): readonly [pattern: string, id: string] {
  const [, start = "", id = ""] = /^(.*?)(?:\/(\d+))?\/?$/.exec(path) ?? [];
  return [id === "" ? start : `${start}/$id`, id];
}

/** Returns what loads the page at a path below `/console`; undefined: no page of its own. */
export function pageAt(path: string): (() => Promise<unknown>) | undefined {
  const [pattern] = patternOf(path);
  return Object.hasOwn(pages, pattern) ? pages[pattern as keyof typeof pages] : undefined;
}

/** Returns the reads of the page at a path below `/console`. Every page shows the networks whose rules wait for a confirmation. */
export function readsAt(path: string): readonly FirstRead[] {
  const [pattern, id] = patternOf(path);
  return [...(Object.hasOwn(reads, pattern) ? (reads[pattern]?.(id) ?? []) : []), networks];
}
