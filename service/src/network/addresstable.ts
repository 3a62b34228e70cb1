/**
 * SQL of the numbers of taken addresses, by network and block of 256 addresses. `table.ts` changes them with each link, so that a free
 * address is found without counting the links of the network.
 */
import { sql } from "kysely";
import { prepare, type Reader, type Tx } from "../store/db.ts";

/** The number of taken addresses in a block. */
export interface AddressCount {
  /** First six digits of the stored addresses. */
  readonly block: string;
  readonly taken: number;
}

/** Returns the block of a stored address. */
const blockOf = (ip: string): string => ip.slice(0, 6);

const add = prepare<{ network: number; block: string; by: number }>()((db, p) =>
  db
    .insertInto("address_count")
    .values({ network_id: p("network"), block: p("block"), taken: p("by") })
    .onConflict((conflict) =>
      conflict
        .columns(["network_id", "block"])
        .doUpdateSet((row) => ({ taken: row("address_count.taken", "+", row.ref("excluded.taken")) })),
    ),
);

/** Changes the number of taken addresses in the block of `ip` by 1 or -1. */
export const countAddress = (tx: Tx, network: number, ip: string, by: 1 | -1): void =>
  add.send(tx, { network, block: blockOf(ip), by });

const ofNetwork = prepare<{ network: number }>()((db, p) =>
  db
    .selectFrom("address_count")
    .select(["block", "taken"])
    .where("network_id", "=", p("network"))
    .where("taken", ">", 0)
    .orderBy("block"),
);

/** Returns the blocks of a network with taken addresses, in order. */
export const listAddressCounts = (db: Reader, network: number): Promise<AddressCount[]> =>
  ofNetwork.all(db, { network });

/** Counts the links of all networks again. For the start of the service: a program beside it may have changed them. */
export async function recountAddresses(tx: Tx): Promise<void> {
  await tx.deleteFrom("address_count").execute();
  await sql`insert into address_count (network_id, block, taken)
    select network_id, substr(ip, 1, 6), count(*) from link group by network_id, substr(ip, 1, 6)`.execute(tx);
}
