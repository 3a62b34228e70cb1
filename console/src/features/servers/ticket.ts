/** Opens a console of a server: a request issues a ticket, which opens one WebSocket. */
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";

/** Returns a function that gets a new URL. It rejects after its error was shown. */
export function useTicket(id: number, type: "Serial" | "Vnc"): () => Promise<string> {
  const { client } = useData();
  const { run } = useChange(() => client.openConsole({ path: { id }, body: { Type: type } }));
  return async () => {
    const { Url } = await run(undefined);
    // The page and the ticket may have different names for the service, for example behind a proxy.
    return `${location.origin.replace(/^http/, "ws")}${new URL(Url).pathname}`;
  };
}
