/** Everything that is known about the installation: client, query cache, event stream and who is signed in. One for each page load. */
import type { Account } from "@brume/api/account.ts";
import type { Client } from "@brume/api/client.ts";
import type { Event } from "@brume/api/event.ts";
import { grants, type Scope } from "@brume/api/operation.ts";
import type { Token } from "@brume/api/token.ts";
import { QueryClient, useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext } from "react";
import { type Cell, createCell } from "./cell.ts";
import { createConsoleClient } from "./client.ts";
import type { FirstReads } from "./firstreads.ts";
import { createCacheUpdates } from "./follow.ts";
import { queriesOf } from "./queries.ts";
import { type Connection, type EventStream, startStream } from "./stream.ts";
import { createUploads, type Uploads } from "./uploads.ts";

/** `unknown`: not read yet; `ended`: the session ended, and the user has not signed out. */
export type SignedIn = "unknown" | "in" | "out" | "ended";

export interface Data {
  readonly client: Client;
  readonly queries: QueryClient;
  readonly uploads: Uploads;
  /** Changes of objects that are not applied yet, by kind and id: `domain:3`. See `useDraft`. */
  readonly drafts: Map<string, unknown>;
  /** Firewall rules that this tab has applied until they are confirmed: their text, by id of the network. See `useRollBack`. */
  readonly trials: Map<number, string>;
  readonly signedIn: Cell<SignedIn>;
  readonly connection: Cell<Connection>;
  /** The latest events, the newest first. */
  readonly recent: Cell<readonly Event[]>;
  /** The events that have arrived last, together: more than `recent` keeps, if there are many. */
  readonly arrived: Cell<readonly Event[]>;
  /** Starts to follow events, after the sign-in and before the first page reads. `after`: id of the newest event; null: unknown. */
  start(account: Account, after: number | null): void;
  /** Forgets everything, after the session has ended. */
  stop(): void;
  retry(): void;
}

/** Events that a page keeps for the live list. */
const mostRecent = 500;

/** `firstReads`: what the page load has requested already. */
export function createData(firstReads: FirstReads): Data {
  const signedIn = createCell<SignedIn>("unknown");
  const connection = createCell<Connection>("connecting");
  const recent = createCell<readonly Event[]>([]);
  const arrived = createCell<readonly Event[]>([]);
  const queries = new QueryClient({
    defaultOptions: {
      // Events keep the cache current, and the SDK repeats failed requests.
      queries: { staleTime: Infinity, gcTime: 300_000, retry: false, refetchOnWindowFocus: false },
    },
  });
  const updates = createCacheUpdates(queries);
  let stream: EventStream | null = null;

  const { client, forgetFirst } = createConsoleClient(firstReads, () => onSignedOut());
  const uploads = createUploads(client);
  const drafts = new Map<string, unknown>();
  const trials = new Map<number, string>();
  /** Id of the token that is signed in; null: none. All tabs share its cookie, so the sign-in of one tab is that of all. */
  let owner: number | null = null;
  const isOut = (): boolean => signedIn.get() === "out" || signedIn.get() === "ended";
  const tabs = "BroadcastChannel" in globalThis ? new BroadcastChannel("brume-token") : null;
  tabs?.addEventListener("message", ({ data }: MessageEvent<number>) => {
    // A tab that shows the sign-in continues with the session of the other one.
    if (owner === null ? isOut() : data !== owner) leave("unknown");
  });
  /** Forgets everything of the token. */
  const leave = (next: SignedIn): void => {
    owner = null;
    uploads.stop();
    drafts.clear();
    trials.clear();
    stream?.close();
    stream = null;
    forgetFirst();
    updates.clear();
    recent.set([]);
    queries.clear();
    signedIn.set(next);
  };
  const stop = (): void => leave("out");
  const onSignedOut = (): void => {
    if (!isOut()) leave(owner === null ? "out" : "ended");
  };
  const onEvents = (events: readonly Event[]): void => {
    // An event is not written into a response that no page has used yet.
    forgetFirst();
    updates.apply(events);
    const { readAgain } = updates;
    // Capacity and usage change with the objects.
    if (events.some(({ Resource }) => Resource === "server")) readAgain(["location"]);
    for (const { Type, Resource, ResourceID, ParentID } of events) {
      if (Type === `${Resource}.deleted`) drafts.delete(`${Resource}:${ResourceID}`);
      // The domain of a record has a new serial, and a record may be new.
      if (Resource === "record" && ParentID !== null) readAgain(["domain", "one", ParentID]);
      // Events contain no counters of rules and no keys of tunnels.
      if (Resource === "publicnetwork") {
        readAgain(["publicnetwork", "one", ResourceID]);
        readAgain(["rulecounters", ResourceID]);
      }
      if (Resource === "tunnel" && ParentID !== null) readAgain(["tunnelstatus", ParentID]);
    }
    if (events.some(({ Type }) => Type === "domain.withdrawn")) readAgain(["withdrawn"]);
    readAgain(["project", "own"]);
    if (events.some(({ Resource }) => Resource === "project")) readAgain(["projects"]);
    // Every change has an entry in the audit log, and a delivery to each webhook. Only what a page shows is read again.
    updates.readLater(["audit"]);
    readAgain(["delivery"]);
    arrived.set(events);
    recent.set([...events.toReversed(), ...recent.get()].slice(0, mostRecent));
  };

  const onGap = (): void => {
    forgetFirst();
    // The lists of events are read again too. An older copy of the database gives the same ids to other events.
    recent.set([]);
    updates.readAllAgain();
  };

  return {
    client,
    queries,
    uploads,
    drafts,
    trials,
    signedIn,
    connection,
    recent,
    arrived,
    start({ Token: { ID } }, after) {
      owner = ID;
      tabs?.postMessage(ID);
      signedIn.set("in");
      if (stream !== null) return;
      stream = startStream({ token: ID, after, readNewest: () => readNewest(client), onEvents, onGap, onSignedOut });
      const { connection: of } = stream;
      of.subscribe(() => {
        connection.set(of.get());
        // What ended the connection may have ended reads too.
        if (of.get() === "open") updates.readFailedAgain();
      });
    },
    stop,
    retry: () => stream?.retry(),
  };
}

const DataContext = createContext<Data | null>(null);
export const DataProvider = DataContext.Provider;

export function useData(): Data {
  const data = useContext(DataContext);
  if (data === null) throw new Error("outside of DataProvider");
  return data;
}

/** Key of the account, which the sign-in reads first. */
const accountKey = ["account"] as const;

export const readAccount = (client: Client) => ({
  queryKey: accountKey,
  queryFn: ({ signal }: { signal: AbortSignal }) => client.readAccount({}, { signal }),
});

/** Resolves to the id of the newest event, null if it cannot be read. What is read later contains this event and all before it. */
export async function readNewest(client: Client): Promise<number | null> {
  try {
    const [newest] = await client.listEvents({ query: { newest: true, limit: 1 } });
    return newest?.ID ?? 0;
  } catch {
    return null;
  }
}

const AccountContext = createContext<Account | undefined>(undefined);

/** Reads the account of the signed-in token once for all components. */
export function AccountProvider({ children }: { children: ReactNode }) {
  return <AccountContext value={useQuery(readAccount(useData().client)).data}>{children}</AccountContext>;
}

/** Returns the account of the signed-in token; undefined: not read yet. */
export const useAccount = (): Account | undefined => useContext(AccountContext);

/** Returns whether the signed-in token has the scope; absent: each token may. */
export function useMay(scope: Scope | undefined): boolean {
  return useMays()(scope);
}

/** Scopes of tokens for which the host means something: those of servers, and those that watch or manage the installation. */
export const hostScopes = ["server:read", "metrics:read"] as const satisfies readonly Scope[];

/** Returns the function that checks whether the signed-in token has a scope, or one of several. */
export function useMays(): (scope: Scope | readonly Scope[] | undefined) => boolean {
  const scopes = useAccount()?.Token.Scopes;
  return useCallback(
    (scope) => scope === undefined || [scope].flat().some((one) => grants(scopes ?? [], one)),
    [scopes],
  );
}

/** Returns whether the signed-in token sees only one domain; undefined: not known yet. */
export function useIsOfOneDomain(): boolean | undefined {
  const account = useAccount();
  return account && account.Token.DomainID !== null;
}

/** Returns the signed-in token with its limits on records, which the account does not contain; undefined: not read. */
export function useOwnToken(enabled: boolean): Token | undefined {
  const { client } = useData();
  const id = useAccount()?.Token.ID ?? 0;
  return useQuery({ ...queriesOf(client).token(id), enabled: enabled && id > 0 }).data;
}

/** Returns whether the signed-in token may change domains as a whole, for example restore a version: one of a single domain changes only its records. */
export function useMayOwnDomains(): boolean {
  const isOfOneDomain = useIsOfOneDomain();
  return useMay("dns:write") && isOfOneDomain === false;
}
