/** All pages and their addresses. What a page selects (filter, tab, range) is in the query of its address. */
import type { Scope } from "@brume/api/operation.ts";
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { hostScopes } from "../data/data.tsx";
import { Overview } from "../features/overview/overview.tsx";
import { Failure, NotFound } from "../shell/failure.tsx";
import { Frame } from "../shell/frame.tsx";
import { pages } from "./pages.ts";

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** Keeps the named texts of a query. */
const texts =
  <Name extends string>(...names: readonly Name[]) =>
  (query: Readonly<Record<string, unknown>>): { [N in Name]?: string } => {
    const kept: { [N in Name]?: string } = {};
    for (const name of names) {
      const text = textOf(query[name]);
      if (text !== undefined) kept[name] = text;
    }
    return kept;
  };

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound });
const overview = createRoute({ getParentRoute: () => root, path: "/", component: Overview });
const servers = createRoute({
  getParentRoute: () => root,
  path: "/servers",
  staticData: { scope: "server:read" },
  validateSearch: texts("q", "state", "group", "label"),
  component: lazyRouteComponent(pages["/servers"], "ServerList"),
});
const serverCreate = createRoute({
  getParentRoute: () => root,
  path: "/servers/create",
  staticData: { scope: "server:write" },
  validateSearch: texts("network"),
  component: lazyRouteComponent(pages["/servers/create"], "ServerCreate"),
});
const server = createRoute({
  getParentRoute: () => root,
  path: "/servers/$id",
  staticData: { scope: "server:read" },
  validateSearch: texts("tab", "range", "from", "to"),
  component: lazyRouteComponent(pages["/servers/$id"], "ServerDetail"),
});
const networks = createRoute({
  getParentRoute: () => root,
  path: "/networks",
  staticData: { scope: "network:read" },
  validateSearch: texts("tab", "q", "label", "create", "view"),
  component: lazyRouteComponent(pages["/networks"], "Networks"),
});
const network = createRoute({
  getParentRoute: () => root,
  path: "/networks/$id",
  staticData: { scope: "network:read" },
  validateSearch: texts("tab"),
  component: lazyRouteComponent(pages["/networks/$id"], "NetworkDetail"),
});
const privateNetwork = createRoute({
  getParentRoute: () => root,
  path: "/networks/private/$id",
  staticData: { scope: "network:read" },
  validateSearch: texts("tab"),
  component: lazyRouteComponent(pages["/networks/private/$id"], "PrivateNetworkDetail"),
});
const domains = createRoute({
  getParentRoute: () => root,
  path: "/dns",
  staticData: { scope: "dns:read" },
  validateSearch: texts("tab", "q", "label", "create", "claim"),
  component: lazyRouteComponent(pages["/dns"], "DnsFrame"),
});
const domain = createRoute({
  getParentRoute: () => root,
  path: "/dns/$id",
  staticData: { scope: "dns:read" },
  validateSearch: texts("tab", "q", "type"),
  component: lazyRouteComponent(pages["/dns/$id"], "DomainDetail"),
});
const images = createRoute({
  getParentRoute: () => root,
  path: "/images",
  staticData: { scope: "server:read" },
  validateSearch: texts("q", "label", "create"),
  component: lazyRouteComponent(pages["/images"], "ImageList"),
});
const activity = createRoute({
  getParentRoute: () => root,
  path: "/activity",
  component: lazyRouteComponent(pages["/activity"], "ActivityFrame"),
});
const events = createRoute({
  getParentRoute: () => activity,
  path: "/",
  validateSearch: texts("q", "kind"),
  component: lazyRouteComponent(pages["/activity/"], "Events"),
});
const audit = createRoute({
  getParentRoute: () => activity,
  path: "/audit",
  staticData: { scope: "account:admin" },
  validateSearch: texts("token", "resource", "operation", "from", "to"),
  component: lazyRouteComponent(pages["/activity/audit"], "AuditList"),
});
const webhooks = createRoute({
  getParentRoute: () => activity,
  path: "/webhooks",
  staticData: { scope: "account:admin" },
  component: lazyRouteComponent(pages["/activity/webhooks"], "WebhookList"),
});
const webhook = createRoute({
  getParentRoute: () => root,
  path: "/activity/webhooks/$id",
  staticData: { scope: "account:admin" },
  validateSearch: texts("state"),
  component: lazyRouteComponent(pages["/activity/webhooks/$id"], "WebhookDetail"),
});
const host = createRoute({
  getParentRoute: () => root,
  path: "/host",
  staticData: { scope: hostScopes },
  validateSearch: texts("tab", "q", "show"),
  component: lazyRouteComponent(pages["/host"], "Host"),
});
const access = createRoute({
  getParentRoute: () => root,
  path: "/access",
  validateSearch: texts("tab", "project", "create"),
  component: lazyRouteComponent(pages["/access"], "Access"),
});
const routeTree = root.addChildren([
  overview,
  servers,
  serverCreate,
  server,
  networks,
  network,
  privateNetwork,
  domains,
  domain,
  images,
  activity.addChildren([events, audit, webhooks]),
  webhook,
  access,
  host,
]);

function stringifySearch(search: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    const text = textOf(value);
    if (text !== undefined) query.set(name, text);
  }
  return query.size === 0 ? "" : `?${query}`;
}

export const createAppRouter = () =>
  createRouter({
    routeTree,
    basepath: "/console",
    // All values are texts. The router would write them as JSON: a text that is a number got quotes.
    parseSearch: (query) => Object.fromEntries(new URLSearchParams(query)),
    stringifySearch,
    defaultPreload: "intent",
    scrollRestoration: true,
    defaultErrorComponent: Failure,
    defaultNotFoundComponent: NotFound,
  });

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** What a token needs to see the page, of several scopes one; absent: nothing. */
    readonly scope?: Scope | readonly Scope[];
  }
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
