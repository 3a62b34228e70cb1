/**
 * Prints pages of servers as JSON. A page is kept until the next commit; the read after it compares what the database stores of the page with
 * the text from which the page was created. Where nothing differs, the printed servers are used again. So no other module reports changes,
 * and none can be missed.
 */
import { isDeepStrictEqual } from "node:util";
import { grants } from "@brume/api/operation.ts";
import type { Caller, Page, PrintedItems } from "../http/handler.ts";
import { cutPage } from "../http/list.ts";
import type { Reader } from "../store/db.ts";
import { showLink } from "./links.ts";
import { showServer } from "./model/show.ts";
import { type PageText, parsePage, parseServer, readPageText, type StoredServer } from "./pagetable.ts";
import { countServers } from "./sumtable.ts";
import { passwordFor, type ViewContext } from "./view.ts";

/** Prints pages of servers. */
export interface PagePrinter {
  /** Returns the first `limit` servers of the caller's project with an id greater than `after`. `db` sees committed state. */
  print(db: Reader, caller: Caller, page: { limit: number; after: number }): Promise<Page<unknown, PrintedItems>>;
}

/** The JSON of a server, with the observed state that it was created from. */
interface Printed {
  readonly isOn: boolean;
  readonly condition: StoredServer["condition"];
  readonly json: string;
}

/** A server of a kept page. Callers who may see passwords have JSON of their own. */
interface KeptServer extends StoredServer {
  readonly printed: { open?: Printed; secret?: Printed };
}

interface KeptPage {
  readonly text: PageText;
  readonly page: Page<KeptServer>;
  /** `position` when it was read. */
  readonly at: number | null;
}

const areSame = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === others.length && some.every((text, index) => text === others[index]);

const isSame = (one: StoredServer, other: StoredServer): boolean =>
  one.row === other.row && areSame(one.links, other.links) && areSame(one.keys, other.keys);

/** Most kept pages and servers of them together, each of at most about 2 kB. */
const mostKept = 2000;

/** Creates a printer. `position` returns a number that changes with each commit; null: other processes write. */
export function createPagePrinter(context: ViewContext, position: () => number | null): PagePrinter {
  const pages = new Map<string, KeptPage>();
  let size = 0;

  function keep(key: string, kept: KeptPage): void {
    const before = pages.get(key);
    size += before === undefined ? kept.page.items.length + 1 : kept.page.items.length - before.page.items.length;
    pages.set(key, kept);
    if (size <= mostKept) return;
    pages.clear();
    size = 0;
  }

  /** Returns the servers of a page, with what was printed of those that `before` contains. */
  function serversOf(text: PageText, before: readonly KeptServer[]): KeptServer[] {
    const known = new Map(before.map((server) => [server.id, server]));
    return parsePage(text).map((stored) => {
      const same = known.get(stored.id);
      return { ...stored, printed: same !== undefined && isSame(same, stored) ? same.printed : {} };
    });
  }

  async function readPage(db: Reader, project: number, limit: number, after: number): Promise<Page<KeptServer>> {
    const key = `${project} ${limit} ${after}`;
    const known = pages.get(key);
    const at = position();
    if (known !== undefined && at !== null && known.at === at) return known.page;
    const text = await readPageText(db, project, after, limit + 1);
    const total = await countServers(db, project);
    const page =
      known !== undefined && isDeepStrictEqual(known.text, text)
        ? { ...known.page, total }
        : { ...cutPage(serversOf(text, known?.page.items ?? []), limit), total };
    // A commit in between may have changed what was read first.
    keep(key, { text, page, at: position() === at ? at : null });
    return page;
  }

  function print(caller: Caller, stored: StoredServer, isOn: boolean, condition: StoredServer["condition"]): Printed {
    const { row, links, keys } = parseServer(stored);
    const password = passwordFor(context, caller, row);
    const shown = showServer({ ...row, condition }, { links: links.map(showLink), keys, password, isOn });
    return { isOn, condition, json: JSON.stringify(shown) };
  }

  return {
    async print(db, caller, { limit, after }) {
      const { items, ...page } = await readPage(db, caller.projectId, limit, after);
      const kind = grants(caller.scopes, "server:write") ? "secret" : "open";
      const texts = items.map((server) => {
        const isOn = context.power(server.id);
        const condition = context.condition(server);
        const known = server.printed[kind];
        if (known?.isOn === isOn && known.condition === condition) return known.json;
        const printed = print(caller, server, isOn, condition);
        server.printed[kind] = printed;
        return printed.json;
      });
      return { ...page, items: { texts } };
    },
  };
}
