/**
 * Prints pages of servers as JSON. Most servers have not changed since the page was last requested, so the text of each is kept with all
 * that it was created from, and created again only if some of this differs. So no other module reports changes, and none can be missed.
 */
import { grants } from "@brume/api/operation.ts";
import type { Caller } from "../http/handler.ts";
import type { Reader } from "../store/db.ts";
import { showLink } from "./links.ts";
import { showServer } from "./model/show.ts";
import {
  type KeyOfServer,
  type LinkOfServer,
  listLinkedTo,
  type NetworkOfLink,
  pageKeys,
  pageLinks,
  type ShownRow,
} from "./table.ts";
import { passwordFor, type ViewContext, withCondition } from "./view.ts";

/** Prints the servers of a page. */
export interface PagePrinter {
  /** Returns the texts of servers of the caller's project that follow each other in the order of ids. */
  print(db: Reader, caller: Caller, rows: readonly ShownRow[]): Promise<string[]>;
}

/** What a text was created from. */
interface Sources {
  readonly row: ShownRow;
  readonly links: readonly LinkOfServer[];
  /** Of each link. */
  readonly networks: readonly NetworkOfLink[];
  readonly keys: readonly KeyOfServer[];
  readonly isOn: boolean;
}

/** Number of texts that are kept, each of about 1 kB. */
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

const isSame = (one: Sources, other: Sources): boolean =>
  one.isOn === other.isOn &&
  isSameRow(one.row, other.row) &&
  areSameRows(one.links, other.links) &&
  areSameRows(one.networks, other.networks) &&
  areSameRows(one.keys, other.keys);

const nothing: readonly never[] = [];

/** Creates a printer. Callers who may see passwords have texts of their own. */
export function createPagePrinter(context: ViewContext): PagePrinter {
  const kept = { open: new Map<number, Kept>(), secret: new Map<number, Kept>() };

  function textOf(caller: Caller, sources: Sources): string {
    const { row, links, networks, keys, isOn } = sources;
    return JSON.stringify(
      showServer(row, {
        links: links.map((link, index) => showLink({ link, network: networks[index] as NetworkOfLink })),
        keys: keys.map(({ sshkey }) => JSON.parse(sshkey) as never),
        password: passwordFor(context, caller, row),
        isOn,
      }),
    );
  }

  return {
    async print(db, caller, rows) {
      const [first, last] = [rows[0], rows.at(-1)];
      if (first === undefined || last === undefined) return [];
      const page = { project: caller.projectId, first: first.id, last: last.id };
      const listed = await pageLinks(db, page);
      const found =
        listed.length === 0 ? [] : await listLinkedTo(db, [...new Set(listed.map((link) => link.network_id))]);
      const networkOf = new Map(found.map((network) => [network.id, network]));
      const links = Map.groupBy(
        listed.filter(({ network_id }) => networkOf.has(network_id)),
        ({ server_id }) => server_id,
      );
      const keys = Map.groupBy(await pageKeys(db, page), ({ server_id }) => server_id);
      const texts = grants(caller.scopes, "server:write") ? kept.secret : kept.open;
      return rows.map((stored) => {
        const row = withCondition(context, stored);
        const { id } = row;
        const isOn = context.power(id);
        const own = links.get(id) ?? nothing;
        const networks = own.map(({ network_id }) => networkOf.get(network_id) as NetworkOfLink);
        const sources = { row, links: own, networks, keys: keys.get(id) ?? nothing, isOn };
        const known = texts.get(id);
        if (known !== undefined && isSame(known.sources, sources)) return known.text;
        const text = textOf(caller, sources);
        texts.delete(id);
        if (texts.size >= mostKept) texts.delete(texts.keys().next().value ?? 0);
        texts.set(id, { sources, text });
        return text;
      });
    },
  };
}

interface Kept {
  readonly sources: Sources;
  readonly text: string;
}
