/** The client of the console: the SDK with the session cookie. Only this module and the one of the first reads send requests. */
import { ApiError, type Client, createClient } from "@brume/api/client.ts";
import { loadDetails } from "../texts/detail.ts";
import { type FirstReads, withCookie } from "./firstreads.ts";

/** Is called when the session has ended. */
export type OnSignedOut = () => void;

/** The client, and what makes it forget the responses of the page load. */
interface ConsoleClient {
  readonly client: Client;
  forgetFirst(): void;
}

/** Creates the client. Each of `firstReads` is used once; later reads send a request. `onSignedOut` is called when a response shows that there is no session. */
export function createConsoleClient(firstReads: FirstReads, onSignedOut: OnSignedOut): ConsoleClient {
  const first = new Map(firstReads);
  /** Returns the response that was requested before; null: the request is not sent yet. */
  const take = async (url: unknown, method: string | undefined): Promise<Response | null> => {
    if (method !== "GET" || typeof url !== "string") return null;
    const response = first.get(url);
    first.delete(url);
    return response ?? null;
  };
  const client = createClient({
    url: location.origin,
    retries: 2,
    async fetch(input, init) {
      const response = (await take(input, init?.method)) ?? (await withCookie(input, init));
      if (response.status === 401) onSignedOut();
      // The error is shown next, in the language of the user.
      if (!response.ok) await loadDetails();
      return response;
    },
  });
  return { client, forgetFirst: () => first.clear() };
}

/** Exchanges a token for the session cookie. Throws `ApiError` for a token that is not valid. */
export async function signIn(token: string, name: string): Promise<void> {
  // A header can only contain these characters; the service rejects any other token too.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError("not a token");
  const client = createClient({ url: location.origin, token, retries: 0, fetch: withCookie });
  await client.createSession({ body: { Name: name } });
}

/** Opens the event stream. Throws `ApiError` without a session. */
export async function openStream(after: number | null, signal: AbortSignal): Promise<Response> {
  const response = await withCookie("/event", {
    headers: { Accept: "text/event-stream", ...(after !== null && { "Last-Event-ID": String(after) }) },
    signal,
    cache: "no-store",
  });
  if (!response.ok) throw new ApiError("GET /event", response.status, response.headers, null);
  return response;
}

/** Returns a name for the session from the browser, such as `Firefox on Linux`. */
export function browserName(agent: string): string {
  const browser =
    /\b(Edg|OPR|Firefox|Chrome|Safari)\//.exec(agent.replace(/Chrome.*(Edg|OPR)/, "$1"))?.[1] ?? "Browser";
  const system = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(agent)?.[0] ?? "";
  const shown = { Edg: "Edge", OPR: "Opera" }[browser] ?? browser;
  return system === "" ? shown : `${shown} on ${system.replace("Mac OS X", "macOS")}`;
}
