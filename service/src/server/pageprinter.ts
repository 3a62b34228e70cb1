/**
 * Prints pages of servers as JSON. What the database stores of a page is kept until the next commit. Most servers have not changed since the
 * page was last requested, so the text of each is kept too, with all that it was created from, and created again only if some of this
 * differs. So no other module reports changes, and none can be missed.
 */
import { grants } from "@brume/api/operation.ts";
import { createMemo } from "../base/memo.ts";
import type { Caller, Page, PrintedItems } from "../http/handler.ts";
import { cutPage } from "../http/list.ts";
import type { Reader } from "../store/db.ts";
import { showLink } from "./links.ts";
import { showServer } from "./model/show.ts";
import { countServers } from "./sumtable.ts";
import {
  type KeyOfServer,
  type LinkOfServer,
  listLinkedTo,
  type NetworkOfLink,
  pageKeys,
  pageLinks,
  pageShown,
  type ShownRow,
} from "./table.ts";
import { passwordFor, type ViewContext } from "./view.ts";

/** Prints pages of servers. */
export interface PagePrinter {
  /** Returns the first `limit` servers of the caller's project with an id greater than `after`. `db` sees committed state. */
  print(db: Reader, caller: Caller, page: { limit: number; after: number }): Promise<Page<unknown, PrintedItems>>;
}

/** What the database stores of a server. */
interface Stored {
  readonly row: ShownRow;
  readonly links: readonly LinkOfServer[];
  /** Of each link. */
  readonly networks: readonly NetworkOfLink[];
  readonly keys: readonly KeyOfServer[];
}

/** A text with what it was created from. */
interface Kept {
  readonly stored: Stored;
  readonly isOn: boolean;
  readonly condition: ShownRow["condition"];
  readonly text: string;
}

/** Number of servers whose texts are kept, each of about 1 kB, and number of servers of the kept pages. */
const mostKept = 2000;

const isSameValue = (one: unknown, other: unknown): boolean =>
  one === other || (one instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(one, other) === 0);

/** Returns whether two rows of the same query have equal columns. */
function isSameRow(one: object, other: object): boolean {
  for (const column in one)
    if (!isSameValue(one[column as keyof typeof one], other[column as keyof typeof other])) return false;
  return true;
}

const areSameRows = (some: readonly object[], others: readonly object[]): boolean =>
  some.length === others.length && some.every((row, index) => isSameRow(row, others[index] as object));

const isSame = (one: Stored, other: Stored): boolean =>
  one === other ||
  (isSameRow(one.row, other.row) &&
    areSameRows(one.links, other.links) &&
    areSameRows(one.networks, other.networks) &&
    areSameRows(one.keys, other.keys));

const nothing: readonly never[] = [];

/** Returns links, networks and keys of servers that follow each other in the order of ids. */
async function readStored(db: Reader, project: number, rows: readonly ShownRow[]): Promise<readonly Stored[]> {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return nothing;
  const page = { project, first: first.id, last: last.id };
  const listed = await pageLinks(db, page);
  const found = listed.length === 0 ? [] : await listLinkedTo(db, [...new Set(listed.map((link) => link.network_id))]);
  const networkOf = new Map(found.map((network) => [network.id, network]));
  const links = Map.groupBy(
    listed.filter(({ network_id }) => networkOf.has(network_id)),
    ({ server_id }) => server_id,
  );
  const keys = Map.groupBy(await pageKeys(db, page), ({ server_id }) => server_id);
  return rows.map((row) => {
    const own = links.get(row.id) ?? nothing;
    const networks = own.map(({ network_id }) => networkOf.get(network_id) as NetworkOfLink);
    return { row, links: own, networks, keys: keys.get(row.id) ?? nothing };
  });
}

/**
 * Creates a printer. Callers who may see passwords have texts of their own. `position` returns a number that changes with each commit; null:
 * other processes write.
 */
export function createPagePrinter(context: ViewContext, position: () => number | null): PagePrinter {
  const kept = { open: new Map<number, Kept>(), secret: new Map<number, Kept>() };
  const pages = createMemo<Page<Stored>>(position, mostKept, ({ items }) => items.length + 1);

  async function readPage(db: Reader, project: number, limit: number, after: number): Promise<Page<Stored>> {
    const { items, next } = cutPage(await pageShown(db, project, after, limit + 1), limit);
    return { items: await readStored(db, project, items), total: await countServers(db, project), next };
  }

  function textOf(caller: Caller, { row, links, networks, keys }: Stored, shown: Pick<Kept, "isOn" | "condition">) {
    return JSON.stringify(
      showServer(
        { ...row, condition: shown.condition },
        {
          links: links.map((link, index) => showLink({ link, network: networks[index] as NetworkOfLink })),
          keys: keys.map(({ sshkey }) => JSON.parse(sshkey) as never),
          password: passwordFor(context, caller, row),
          isOn: shown.isOn,
        },
      ),
    );
  }

  return {
    async print(db, caller, { limit, after }) {
      const { projectId } = caller;
      const page = await pages.get(`${projectId} ${limit} ${after}`, () => readPage(db, projectId, limit, after));
      const texts = grants(caller.scopes, "server:write") ? kept.secret : kept.open;
      const items = page.items.map((stored) => {
        const { id } = stored.row;
        const isOn = context.power(id);
        const condition = context.condition(stored.row);
        const known = texts.get(id);
        if (known?.isOn === isOn && known.condition === condition && isSame(known.stored, stored)) {
          // The next comparison is that of the same object.
          if (known.stored !== stored) texts.set(id, { ...known, stored });
          return known.text;
        }
        const text = textOf(caller, stored, { isOn, condition });
        texts.delete(id);
        if (texts.size >= mostKept) texts.delete(texts.keys().next().value ?? 0);
        texts.set(id, { stored, isOn, condition, text });
        return text;
      });
      return { ...page, items: { texts: items } };
    },
  };
}
