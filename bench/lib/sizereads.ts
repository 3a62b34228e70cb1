/** The reads of `../size.ts`. */
import type { Brume } from "./brume.ts";
import { medianOf } from "./figures.ts";
import { type Cost, send } from "./probe.ts";

/** Reads that return much, or search in much. */
export const reads = [
  { name: "zone as JSON", path: "/dns/1", headers: {} },
  { name: "zone as zone file", path: "/dns/1", headers: { accept: "text/dns" } },
  { name: "/metrics", path: "/metrics", headers: {} },
  { name: "page of events", path: "/event?limit=100", headers: {} },
  { name: "page of events of a type", path: "/event?limit=100&type=network.changed", headers: {} },
  { name: "servers by a part of the name", path: "/server?name=*ver-77&limit=10", headers: {} },
  { name: "servers by a label of all", path: "/server?label=env%3Dbench&limit=10", headers: {} },
  { name: "servers by a network of all", path: "/server?network=1&limit=10", headers: {} },
  { name: "all servers", path: "/server", headers: {} },
  { name: "100 public networks", path: "/publicnetwork?limit=100", headers: {} },
  { name: "all public networks", path: "/publicnetwork", headers: {} },
] as const;

/**
 * Reads whose cost does not grow. Nine tenths of the events have the type `server.changed`, none `disk.low`; filters match as many objects
 * at each size, because `X-Total-Count` counts them.
 */
const pages = [
  ["100 events", "/event?limit=100"],
  ["newest 100 events", "/event?limit=100&newest=true"],
  ["100 events of a type", "/event?limit=100&type=server.changed"],
  ["events of a type that has none", "/event?limit=100&type=disk.low"],
  ["servers by name", "/server?name=server-77&limit=10"],
  ["servers by the beginning of the name", "/server?name=web-*&limit=10"],
  ["servers by label", "/server?label=env%3Dnone&limit=10"],
  ["servers by state", "/server?state=Failed&limit=10"],
  ["servers by network", "/server?network=network-7&limit=10"],
  ["servers by address", "/server?ip=192.0.2.1&limit=10"],
  ["public networks by name", "/publicnetwork?name=network-7&limit=10"],
  ["domains by name", "/dns?name=large.example&records=false&limit=10"],
] as const;

const rounds = 4;
const readsOfRound = 500;

/**
 * Returns the milliseconds of one read of each page: median of the responses, and processor time. All pages are read in each round, because
 * other programs slow a host down for seconds. `measure` measures an act, and `ownTime` returns its processor time without that of the background.
 */
export async function measurePages(
  brume: Brume,
  measure: (act: () => Promise<void>) => Promise<Cost<void>>,
  ownTime: (cost: Cost<unknown>) => number,
): Promise<Map<string, { readonly response: number; readonly processor: number }>> {
  const figures = new Map(pages.map(([name]) => [name as string, { took: [] as number[], processor: 0 }]));
  for (let round = 0; round < rounds; round++)
    for (const [name, path] of pages) {
      const figure = figures.get(name);
      const cost = await measure(async () => {
        for (let index = 0; index < readsOfRound; index++)
          figure?.took.push((await send(brume, "GET", path, { headers: { prefer: "handling=strict" } })).ms);
      });
      if (figure !== undefined) figure.processor += ownTime(cost);
    }
  return new Map(
    [...figures].map(([name, { took, processor }]) => [
      name,
      { response: medianOf(took), processor: processor / took.length },
    ]),
  );
}
