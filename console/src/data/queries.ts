/** The reads of all pages, with their keys. `patch.ts` describes the form of a key. */
import type { Client } from "@brume/api/client.ts";
import { keepPreviousData, type QueryClient, queryOptions } from "@tanstack/react-query";

/** Objects per request of a long list. */
const pageSize = 1000;

/** Filter of the audit log. */
export interface AuditFilter {
  readonly token?: number;
  readonly resource?: string;
  readonly operation?: string;
  readonly from?: string;
  readonly to?: string;
}

interface ApiDocument {
  readonly info: { readonly version: string };
}

interface Context {
  readonly client: QueryClient;
  readonly queryKey: readonly unknown[];
}

/** Reads all pages of a list. The first page is shown while the others are read. */
async function readAll<T>(pages: AsyncGenerator<T[], void>, { client, queryKey }: Context): Promise<T[]> {
  const all: T[] = [];
  for await (const page of pages) {
    for (const item of page) all.push(item);
    if (all.length === page.length && client.getQueryData(queryKey) === undefined && page.length === pageSize)
      client.setQueryData(queryKey, all.slice());
  }
  return all;
}

const limit = { query: { limit: pageSize } };

/** Creates the reads of a client. */
export const queriesOf = (client: Client) => ({
  servers: () =>
    queryOptions({
      queryKey: ["server", "list"],
      queryFn: (context) => readAll(client.pages("listServers", limit, { signal: context.signal }), context),
    }),
  server: (id: number) =>
    queryOptions({
      queryKey: ["server", "one", id],
      queryFn: ({ signal }) => client.readServer({ path: { id } }, { signal }),
    }),
  actions: (id: number) =>
    queryOptions({
      queryKey: ["action", "list", id],
      queryFn: ({ signal }) => client.listActions({ path: { id }, query: { limit: 100 } }, { signal }),
    }),
  metrics: (id: number, seconds: number, step: number) =>
    queryOptions({
      queryKey: ["metrics", id, seconds],
      queryFn: ({ signal }) =>
        client.readServerMetrics(
          { path: { id }, query: { from: new Date(Date.now() - seconds * 1000).toISOString(), step } },
          { signal },
        ),
      // Measurements have no events. A chart that is not visible is not read.
      refetchInterval: Math.max(10_000, step * 1000),
    }),
  metricsBetween: (id: number, from: number, to: number, step: number) =>
    queryOptions({
      queryKey: ["metrics", id, from, to],
      queryFn: ({ signal }) =>
        client.readServerMetrics(
          {
            path: { id },
            query: { from: new Date(from * 1000).toISOString(), to: new Date(to * 1000).toISOString(), step },
          },
          { signal },
        ),
    }),
  log: (id: number, isPrevious: boolean) =>
    queryOptions({
      queryKey: ["log", id, isPrevious],
      queryFn: ({ signal }) =>
        client.text("readServerLog", { path: { id }, query: { tail: 2000, previous: isPrevious } }, { signal }),
      staleTime: 0,
      // Output has no events.
      refetchInterval: isPrevious ? false : 3000,
    }),
  images: () =>
    queryOptions({ queryKey: ["image", "list"], queryFn: ({ signal }) => client.listImages({}, { signal }) }),
  locations: () =>
    queryOptions({ queryKey: ["location", "list"], queryFn: ({ signal }) => client.listLocations({}, { signal }) }),
  sshKeys: () =>
    queryOptions({ queryKey: ["sshkey", "list"], queryFn: ({ signal }) => client.listSshKeys({}, { signal }) }),
  publicNetworks: () =>
    queryOptions({
      queryKey: ["publicnetwork", "list"],
      queryFn: ({ signal }) => client.listPublicNetworks({}, { signal }),
    }),
  networks: () =>
    queryOptions({ queryKey: ["network", "list"], queryFn: ({ signal }) => client.listNetworks({}, { signal }) }),
  publicNetwork: (id: number) =>
    queryOptions({
      queryKey: ["publicnetwork", "one", id],
      queryFn: ({ signal }) => client.readPublicNetwork({ path: { id } }, { signal }),
    }),
  ruleCounters: (id: number) =>
    queryOptions({
      queryKey: ["rulecounters", id],
      queryFn: async ({ signal }) => (await client.readPublicNetwork({ path: { id } }, { signal })).Firewall.Rules,
      // Counters have no events.
      refetchInterval: 10_000,
    }),
  network: (id: number) =>
    queryOptions({
      queryKey: ["network", "one", id],
      queryFn: ({ signal }) => client.readNetwork({ path: { id } }, { signal }),
    }),
  tunnelStatus: (id: number) =>
    queryOptions({
      queryKey: ["tunnelstatus", id],
      queryFn: ({ signal }) => client.readVpnStatus({ path: { id } }, { signal }),
      // States have events, traffic has none.
      refetchInterval: 10_000,
    }),
  domains: () =>
    queryOptions({
      queryKey: ["domain", "list"],
      queryFn: (context) =>
        readAll(
          client.pages("listDomains", { query: { records: false, limit: pageSize } }, { signal: context.signal }),
          context,
        ),
    }),
  domain: (id: number) =>
    queryOptions({
      queryKey: ["domain", "one", id],
      queryFn: ({ signal }) => client.readDomain({ path: { id } }, { signal }),
    }),
  claims: () =>
    queryOptions({ queryKey: ["claim", "list"], queryFn: ({ signal }) => client.listClaims({}, { signal }) }),
  withdrawnDomains: () =>
    queryOptions({
      queryKey: ["withdrawn", "list"],
      queryFn: ({ signal }) => client.listWithdrawnDomains({}, { signal }),
    }),
  withdrawnDomain: (id: number) =>
    queryOptions({
      queryKey: ["withdrawn", "one", id],
      queryFn: ({ signal }) => client.readWithdrawnDomain({ path: { id } }, { signal }),
    }),
  reservations: () =>
    queryOptions({
      queryKey: ["reservation", "list"],
      queryFn: ({ signal }) => client.listReservations({}, { signal }),
    }),
  versions: (id: number, serial: number, most: number) =>
    queryOptions({
      queryKey: ["version", id, serial, most],
      queryFn: ({ signal }) => client.listVersions({ path: { id }, query: { limit: most } }, { signal }),
      placeholderData: keepPreviousData,
    }),
  domainMetrics: (id: number) =>
    queryOptions({
      queryKey: ["domainmetrics", id],
      queryFn: ({ signal }) => client.readDomainMetrics({ path: { id } }, { signal }),
      // Queries have no events.
      refetchInterval: 10_000,
    }),
  project: () =>
    queryOptions({ queryKey: ["project", "own"], queryFn: ({ signal }) => client.readOwnProject({}, { signal }) }),
  projectOf: (id: number) =>
    queryOptions({
      // A form begins with what is stored now, and keeps it while it is open.
      queryKey: ["editedproject", id],
      queryFn: ({ signal }) => client.readProject({ path: { id } }, { signal }),
      gcTime: 0,
    }),
  projects: () =>
    queryOptions({ queryKey: accountProjects, queryFn: ({ signal }) => client.readAccount({}, { signal }) }),
  token: (id: number) =>
    queryOptions({
      queryKey: ["token", "one", id],
      queryFn: ({ signal }) => client.readToken({ path: { id } }, { signal }),
    }),
  tokens: (project?: number) =>
    queryOptions({
      queryKey: ["token", "list", project ?? 0],
      queryFn: ({ signal }) => client.listTokens(project === undefined ? {} : { query: { project } }, { signal }),
    }),
  sessions: () =>
    queryOptions({ queryKey: ["session", "list"], queryFn: ({ signal }) => client.listSessions({}, { signal }) }),
  readiness: () =>
    queryOptions({
      queryKey: ["readiness"],
      queryFn: ({ signal }) => client.readReadiness({}, { signal }),
      // Checks have no events.
      refetchInterval: 15_000,
    }),
  audit: (filter: AuditFilter, most: number) =>
    queryOptions({
      queryKey: ["audit", filter, most],
      queryFn: ({ signal }) => client.listAudit({ query: { ...filter, limit: most } }, { signal }),
      placeholderData: keepPreviousData,
    }),
  webhooks: () =>
    queryOptions({ queryKey: ["webhook", "list"], queryFn: ({ signal }) => client.listWebhooks({}, { signal }) }),
  webhook: (id: number) =>
    queryOptions({
      queryKey: ["webhook", "one", id],
      queryFn: ({ signal }) => client.readWebhook({ path: { id } }, { signal }),
    }),
  deliveries: (id: number) =>
    queryOptions({
      queryKey: ["delivery", id],
      queryFn: ({ signal }) => client.listDeliveries({ path: { id } }, { signal }),
      // A delivery has no events of its own.
      refetchInterval: ({ state: { data } }) => (data?.some(({ State }) => State === "Waiting") ? 3000 : false),
    }),
  version: () =>
    queryOptions({
      queryKey: ["version"],
      queryFn: async ({ signal }) => ((await client.readOpenapi({}, { signal })) as ApiDocument).info.version,
    }),
  settings: () =>
    queryOptions({ queryKey: ["setting", "list"], queryFn: ({ signal }) => client.listSettings({}, { signal }) }),
  orphans: () =>
    queryOptions({ queryKey: ["orphan", "list"], queryFn: ({ signal }) => client.listOrphans({}, { signal }) }),
});

/** The response is no list of rows, so events cannot be written into it. */
const accountProjects = ["projects"];
