/** A stream of more events a second than a simulated host can cause, for the tests and the benchmark of the console. */
import type { Event } from "@brume/api/event.ts";
import type { Page } from "playwright-core";

/** Lets each page that loads after this read a stream of copies of `event`, named `busy 1`, `busy 2` and so on, instead of the stream of the service. */
export function sendEvents(
  page: Page,
  event: Event,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<unknown> {
  return page.addInitScript(
    ([sample, each, all]) => {
      const real = globalThis.fetch;
      globalThis.fetch = (input, init) => {
        if (input !== "/event") return real(input, init);
        let sent = 0;
        const body = new ReadableStream({
          start(stream) {
            const timer = setInterval(() => {
              let text = "";
              for (let index = 0; index < each; index++) {
                sent++;
                const Data = { ...(sample.Data as object), Name: `busy ${sent}` };
                const one = { ...sample, ID: 1_000_000 + sent, Data };
                text += `event: ${sample.Type}\nid: ${one.ID}\ndata: ${JSON.stringify(one)}\n\n`;
              }
              stream.enqueue(new TextEncoder().encode(text));
              if (sent >= all) clearInterval(timer);
            }, 50);
          },
        });
        return Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
      };
    },
    [event, perSecond / 20, perSecond * seconds] as const,
  );
}
