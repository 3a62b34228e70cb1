/**
 * SQL of the sums that count against quotas and capacity. `table.ts` changes them in the transaction of each change of a server, so that a
 * request reads one row per project instead of all servers.
 */
import { sql } from "kysely";
import { prepare, type Reader, type Tx } from "../store/db.ts";
import type { ServerTable } from "../store/schema/server.ts";

/** Sums that count against quotas and capacity: cores, MB, GB. Failed servers do not count. */
export interface Held {
  readonly Servers: number;
  readonly CPU: number;
  readonly RAM: number;
  readonly HDD: number;
}

/** The fields of a server that count. */
export type Counted = Pick<ServerTable, "project_id" | "held_cpu" | "held_ram" | "held_hdd">;

const add = prepare<{ project: number; servers: number; holding: number; cpu: number; ram: number; hdd: number }>()(
  (db, p) =>
    db
      .insertInto("server_sum")
      .values({
        project_id: p("project"),
        servers: p("servers"),
        holding: p("holding"),
        cpu: p("cpu"),
        ram: p("ram"),
        hdd: p("hdd"),
      })
      .onConflict((conflict) =>
        conflict.column("project_id").doUpdateSet((row) => ({
          servers: row("server_sum.servers", "+", row.ref("excluded.servers")),
          holding: row("server_sum.holding", "+", row.ref("excluded.holding")),
          cpu: row("server_sum.cpu", "+", row.ref("excluded.cpu")),
          ram: row("server_sum.ram", "+", row.ref("excluded.ram")),
          hdd: row("server_sum.hdd", "+", row.ref("excluded.hdd")),
        })),
      ),
);

const countedServers = (server: Counted | null): number => Number(server !== null && server.held_cpu > 0);

/** Adds the difference between a server before and after a change. `before` null: inserted; `after` null: deleted. */
export function countServer(tx: Tx, before: Counted | null, after: Counted | null): void {
  const project = (after ?? before)?.project_id;
  if (project === undefined) return;
  const change = {
    project,
    servers: Number(after !== null) - Number(before !== null),
    holding: countedServers(after) - countedServers(before),
    cpu: (after?.held_cpu ?? 0) - (before?.held_cpu ?? 0),
    ram: (after?.held_ram ?? 0) - (before?.held_ram ?? 0),
    hdd: (after?.held_hdd ?? 0) - (before?.held_hdd ?? 0),
  };
  add.send(tx, change);
}

const ofProject = prepare<{ project: number }>()((db, p) =>
  db.selectFrom("server_sum").selectAll().where("project_id", "=", p("project")),
);
const ofAll = prepare()((db) => db.selectFrom("server_sum").selectAll());

const toHeld = (rows: Awaited<ReturnType<typeof ofAll.all>>): Held => {
  const sum = (key: "holding" | "cpu" | "ram" | "hdd") => rows.reduce((all, row) => all + row[key], 0);
  return { Servers: sum("holding"), CPU: sum("cpu"), RAM: sum("ram"), HDD: sum("hdd") };
};

/** Returns what the servers of a project use of its quotas. */
export const sumProject = async (db: Reader, project: number): Promise<Held> =>
  toHeld(await ofProject.all(db, { project }));

/** Returns the sums of all servers on the host. */
export const sumAll = async (db: Reader): Promise<Held> => toHeld(await ofAll.all(db, {}));

/** Returns the number of servers of a project, failed ones included. */
export const countServers = async (db: Reader, project: number): Promise<number> =>
  (await ofProject.first(db, { project }))?.servers ?? 0;

/** Sums up all servers again. For the start of the service: a program beside it may have changed them. */
export async function recountServers(tx: Tx): Promise<void> {
  await tx.deleteFrom("server_sum").execute();
  await sql`insert into server_sum (project_id, servers, holding, cpu, ram, hdd)
    select project_id, count(*), sum(case when held_cpu > 0 then 1 else 0 end), sum(held_cpu), sum(held_ram), sum(held_hdd)
    from server group by project_id`.execute(tx);
}
