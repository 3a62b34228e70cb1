/** Walks over the states of all servers page by page, so that the event loop serves requests in between. */
import { createTurn } from "../base/turn.ts";
import type { Reader } from "../store/db.ts";
import { pageServerStates, type ServerStateRow } from "./table.ts";

/** Rows of a page: few enough that reading one takes less than 5 ms. */
const statesTogether = 500;

/** Yields the states of all servers by id, page by page. Each page is read when the one before it has been processed. */
export async function* listServerStates(db: Reader): AsyncGenerator<readonly ServerStateRow[]> {
  const turn = createTurn();
  for (let after = 0; ; ) {
    const page = await pageServerStates.all(db, { after, limit: statesTogether });
    if (page.length > 0) yield page;
    if (page.length < statesTogether) return;
    after = page.at(-1)?.id ?? after;
    if (turn.isOver()) await turn.next();
  }
}
