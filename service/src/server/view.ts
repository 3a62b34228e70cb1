/** Servers as one caller may see them: rows with all that stands around them, one by one or a whole project at once. */
import { grants } from "@brume/api/operation.ts";
import type { Server, ServerLink } from "@brume/api/server.ts";
import type { Sealer } from "../base/secret.ts";
import type { Caller } from "../http/handler.ts";
import { macOf } from "../network/model/plan.ts";
import { listNetworksById } from "../network/table.ts";
import type { Reader } from "../store/db.ts";
import { type LinkedNetwork, listLinkedNetworks, showLink } from "./links.ts";
import { numberedHostName } from "./model/hostname.ts";
import { showServer } from "./model/show.ts";
import { listProjectKeys, listProjectLinks, listServerKeys, type ServerRow } from "./table.ts";

export interface ViewContext {
  readonly sealer: Sealer;
  /** As observed. */
  readonly power: (id: number) => boolean;
}

/** Passwords are for those who may change them. */
const passwordFor = ({ sealer }: ViewContext, caller: Caller, row: ServerRow): string =>
  grants(caller.scopes, "server:write") ? sealer.open(row.admin_password) : "";

export async function viewServer(context: ViewContext, db: Reader, caller: Caller, row: ServerRow): Promise<Server> {
  return showServer(row, {
    links: (await listLinkedNetworks(db, row.id)).map(showLink),
    keys: await listServerKeys(db, row.id),
    password: passwordFor(context, caller, row),
    isOn: context.power(row.id),
  });
}

/** As a dry run shows what it made: without ids, and what comes of them. */
export function withoutIds(server: Server): Server {
  const { ID, HostName, LinkedNetworks } = server;
  return {
    ...server,
    ID: 0,
    HostName: HostName === numberedHostName(ID) ? numberedHostName(0) : HostName,
    AdminPassword: "",
    LinkedNetworks: LinkedNetworks.map((link) => ({ ...link, LinkID: 0, MAC: macOf(0) })),
    ...(server.BatchID !== null && { BatchID: 0 }),
  };
}

export interface Whole {
  readonly links: ReadonlyMap<number, ServerLink[]>;
  /** The server with all of it. */
  show(row: ServerRow): Server;
}

/** What stands around all servers of the caller's project, or these of them, in as many queries as for one. */
export async function viewProject(
  context: ViewContext,
  db: Reader,
  caller: Caller,
  only?: readonly ServerRow[],
): Promise<Whole> {
  // PostgreSQL knows no empty list.
  const ids = only && [0, ...only.map(({ id }) => id)];
  const links = await listProjectLinks(db, caller.projectId, ids);
  const networks = await listNetworksById(db, [...new Set(links.map(({ network_id }) => network_id))]);
  const networkOf = new Map(networks.map((network) => [network.id, network]));
  const places = links.flatMap((link): LinkedNetwork[] => {
    const network = networkOf.get(link.network_id);
    return network === undefined ? [] : [{ link, network }];
  });
  const shown = new Map(
    [...Map.groupBy(places, ({ link }) => link.server_id)].map(([server, own]) => [server, own.map(showLink)]),
  );
  const keys = await listProjectKeys(db, caller.projectId, ids);
  return {
    links: shown,
    show: (row) =>
      showServer(row, {
        links: shown.get(row.id) ?? [],
        keys: keys.get(row.id) ?? [],
        password: passwordFor(context, caller, row),
        isOn: context.power(row.id),
      }),
  };
}
