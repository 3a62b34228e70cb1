/** The list of 50 servers, compared with a bare server: the same list again, and the first one after a commit. */
import type { Brume } from "./brume.ts";
import { bareTime, type Cost, send } from "./probe.ts";

/** Milliseconds of processor time for each list, and for a response of a bare server of this length. */
export interface ListCosts {
  readonly again: number;
  readonly afterCommit: number;
  readonly bare: number;
}

const count = 1000;

/** `measure` measures an act, and `ownTime` returns its processor time without that of the background. */
export async function measureLists(
  brume: Brume,
  measure: <T>(name: string, act: () => Promise<T>) => Promise<Cost<T>>,
  ownTime: (cost: Cost<unknown>) => number,
): Promise<ListCosts> {
  const headers = { "content-type": "application/json", prefer: "handling=strict" };
  const list = () => send(brume, "GET", "/server?limit=50", { headers });
  const { ID } = await brume.client.createDomain({ body: { Name: "small.example" } });
  let commits = 0;
  const commit = () => send(brume, "PUT", `/dns/${ID}`, { body: { Labels: { commit: `${++commits}` } }, headers });
  const both = async () => {
    await commit();
    await list();
  };
  const measureMany = (name: string, act: () => Promise<unknown>) =>
    measure(`${count} ${name}`, async () => {
      for (let index = 0; index < count; index++) await act();
    });
  // As with the bare server, its code is compiled before.
  for (let index = 0; index < count; index++) await both();
  const lists = await measureMany("lists of 50 servers", list);
  const alone = await measureMany("commits", commit);
  const first = await measureMany("commits, each with a list of 50 servers after it", both);
  return {
    again: ownTime(lists) / count,
    afterCommit: (ownTime(first) - ownTime(alone)) / count,
    bare: await bareTime((await list()).bytes, count),
  };
}
