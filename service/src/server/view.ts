/** Builds servers for responses from rows, keys, links and the observed power state: one server, or all of a project. */
import { grants } from "@brume/api/operation.ts";
import type { Server, ServerLink } from "@brume/api/server.ts";
import type { Sealer } from "../base/secret.ts";
import type { Caller } from "../http/handler.ts";
import { macOf } from "../network/model/plan.ts";
import { listNetworksById } from "../network/table.ts";
import type { Reader } from "../store/db.ts";
import { type LinkedNetwork, readParts, type ServerParts, showLink } from "./links.ts";
import { numberedHostName } from "./model/hostname.ts";
import { showServer } from "./model/show.ts";
import { listProjectKeys, listProjectLinks, type ServerRow } from "./table.ts";

/** Dependencies of the views. */
export interface ViewContext {
  readonly sealer: Sealer;
  /** True if the VM was on when last observed. */
  readonly power: (id: number) => boolean;
  /** Condition of the VM of a row. */
  readonly condition: (row: Pick<ServerRow, "id" | "condition">) => ServerRow["condition"];
}

/** Returns the password if the caller may change servers, else an empty string. */
export const passwordFor = ({ sealer }: ViewContext, caller: Caller, row: Pick<ServerRow, "admin_password">): string =>
  grants(caller.scopes, "server:write") ? sealer.open(row.admin_password) : "";

/** Returns the row with the condition that was last observed. */
function withCondition<Row extends Pick<ServerRow, "id" | "condition">>({ condition }: ViewContext, row: Row): Row {
  const observed = condition(row);
  return observed === row.condition ? row : { ...row, condition: observed };
}

/** Returns a server as the caller may see it. `parts`: its links and keys, if they are known. */
export async function viewServer(
  context: ViewContext,
  db: Reader,
  caller: Caller,
  row: ServerRow,
  parts?: ServerParts,
): Promise<Server> {
  const { links, keys } = parts ?? (await readParts(db, row.id));
  return showServer(withCondition(context, row), {
    links: links.map(showLink),
    keys,
    password: passwordFor(context, caller, row),
    isOn: context.power(row.id),
  });
}

/** Returns the new server of a dry run: without ids, and without the values that derive from them. */
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

/** The servers of a project. */
export interface ProjectView {
  /** Links by id of the server. */
  readonly links: ReadonlyMap<number, ServerLink[]>;
  /** Returns a server of the project as the caller may see it. */
  show(row: ServerRow): Server;
}

/** Loads the links and keys of all servers of the caller's project, or of `only`. The number of queries does not depend on the number of servers. */
export async function viewProject(
  context: ViewContext,
  db: Reader,
  caller: Caller,
  only?: readonly ServerRow[],
): Promise<ProjectView> {
  // PostgreSQL does not accept an empty list.
  const ids = only && [0, ...only.map(({ id }) => id)];
  const links = await listProjectLinks(db, caller.projectId, ids);
  const networks = await listNetworksById(db, [...new Set(links.map(({ network_id }) => network_id))]);
  const networkOf = new Map(networks.map((network) => [network.id, network]));
  const linked = links.flatMap((link): LinkedNetwork[] => {
    const network = networkOf.get(link.network_id);
    return network === undefined ? [] : [{ link, network }];
  });
  const shown = new Map(
    [...Map.groupBy(linked, ({ link }) => link.server_id)].map(([server, own]) => [server, own.map(showLink)]),
  );
  const keys = await listProjectKeys(db, caller.projectId, ids);
  return {
    links: shown,
    show: (row) =>
      showServer(withCondition(context, row), {
        links: shown.get(row.id) ?? [],
        keys: keys.get(row.id) ?? [],
        password: passwordFor(context, caller, row),
        isOn: context.power(row.id),
      }),
  };
}
