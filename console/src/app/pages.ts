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

/** Returns what loads the page at a path below `/console`; undefined: no page of its own. */
export function pageAt(path: string): (() => Promise<unknown>) | undefined {
  const pattern = path.replace(/\/$/, "").replace(/\/\d+$/, "/$id");
  return Object.hasOwn(pages, pattern) ? pages[pattern as keyof typeof pages] : undefined;
}
