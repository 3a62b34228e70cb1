/** SQL of a page of servers with their links and keys as text: see `pageprinter.ts`. */
import type { SshKeyRow } from "../catalog/table.ts";
import { prepare, type Reader } from "../store/db.ts";
import { hexOf, rowsAsText, rowsOf } from "../store/text.ts";
import type { ShownLink } from "./links.ts";
import { type ShownRow, shownColumns } from "./table.ts";

const linkColumns = ["id", "ip", "state", "bandwidth"] as const;
const networkColumns = ["id", "kind", "name", "first", "last", "gateway", "first6"] as const;

const serversOfPage = prepare<{ project: number; after: number; limit: number }>()((db, p) =>
  db
    .selectFrom((from) =>
      from
        .selectFrom("server")
        .select(shownColumns)
        .where("project_id", "=", p("project"))
        .where("id", ">", p("after"))
        .orderBy("id")
        .limit(p("limit"))
        .as("page"),
    )
    .select((page) => [
      page.fn.max("id").as("last"),
      rowsAsText(
        db,
        shownColumns.map((column) => (column === "admin_password" ? hexOf(db, page.ref(column)) : page.ref(column))),
      ).as("text"),
    ]),
);

const linksOfPage = prepare<{ project: number; after: number; last: number }>()((db, p) =>
  db
    .selectFrom("link")
    .innerJoin("server", "server.id", "link.server_id")
    .innerJoin("network", "network.id", "link.network_id")
    .where("server.project_id", "=", p("project"))
    .where("server.id", ">", p("after"))
    .where("server.id", "<=", p("last"))
    .select((link) =>
      rowsAsText(db, [
        link.ref("link.server_id"),
        ...linkColumns.map((column) => link.ref(`link.${column}`)),
        ...networkColumns.map((column) => link.ref(`network.${column}`)),
      ]).as("text"),
    ),
);

const keysOfPage = prepare<{ project: number; after: number; last: number }>()((db, p) =>
  db
    .selectFrom("server_key")
    .innerJoin("server", "server.id", "server_key.server_id")
    .where("server.project_id", "=", p("project"))
    .where("server.id", ">", p("after"))
    .where("server.id", "<=", p("last"))
    .select((key) =>
      rowsAsText(
        db,
        (["server_id", "place", "sshkey"] as const).map((column) => key.ref(`server_key.${column}`)),
      ).as("text"),
    ),
);

/** All that the database stores of the servers of a page. */
export interface PageText {
  readonly servers: string;
  readonly links: string;
  readonly keys: string;
}

/** Returns the first `limit` servers of the project with an id greater than `after`. */
export async function readPageText(db: Reader, project: number, after: number, limit: number): Promise<PageText> {
  const { text: servers = null, last = null } = (await serversOfPage.first(db, { project, after, limit })) ?? {};
  if (servers === null || last === null) return { servers: "", links: "", keys: "" };
  const links = (await linksOfPage.first(db, { project, after, last }))?.text ?? "";
  const keys = (await keysOfPage.first(db, { project, after, last }))?.text ?? "";
  return { servers, links, keys };
}

/** A server of a page, with the JSON of its rows. */
export interface StoredServer {
  readonly id: number;
  readonly condition: ShownRow["condition"];
  readonly row: string;
  readonly links: readonly string[];
  readonly keys: readonly string[];
}

const byServer = (text: string): Map<number, string[]> =>
  Map.groupBy(rowsOf(text), (row) => (JSON.parse(row) as [number])[0]);

/** Returns the servers of a page, in order of id. */
export function parsePage({ servers, links, keys }: PageText): StoredServer[] {
  const [linksOf, keysOf] = [byServer(links), byServer(keys)];
  const conditionAt = shownColumns.indexOf("condition");
  return rowsOf(servers)
    .map((row) => {
      const values = JSON.parse(row) as unknown[];
      const [id, condition] = [values[0] as number, values[conditionAt] as StoredServer["condition"]];
      return { id, condition, row, links: linksOf.get(id) ?? [], keys: keysOf.get(id) ?? [] };
    })
    .sort((one, other) => one.id - other.id);
}

const zip = (columns: readonly string[], values: readonly unknown[]): Record<string, unknown> =>
  Object.fromEntries(columns.map((column, at) => [column, values[at]]));

/** Returns row, links and keys of a server, in order of id and place. */
export function parseServer({ row, links, keys }: StoredServer) {
  const values = zip(shownColumns, JSON.parse(row) as unknown[]);
  return {
    row: { ...values, admin_password: Buffer.from(String(values["admin_password"]), "hex") } as unknown as ShownRow,
    links: links
      .map((link) => {
        const [, ...columns] = JSON.parse(link) as unknown[];
        return {
          link: zip(linkColumns, columns),
          network: zip(networkColumns, columns.slice(linkColumns.length)),
        } as unknown as ShownLink;
      })
      .sort((one, other) => one.link.id - other.link.id),
    keys: keys
      .map((key) => JSON.parse(key) as [server: number, place: number, sshkey: string])
      .sort(([, one], [, other]) => one - other)
      .map(([, , sshkey]) => JSON.parse(sshkey) as SshKeyRow),
  };
}
