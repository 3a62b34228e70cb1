import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "@brume/api/client.ts";
import type { Problem } from "@brume/api/errors.ts";
import type { Event } from "@brume/api/event.ts";
import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { waitUntil } from "../../../test/support/waituntil.ts";
import { createCacheUpdates } from "./follow.ts";

const event = (ID: number, Type: string, ResourceID: number, Data: object, ParentID: number | null = null): Event =>
  ({ ID, Type, Resource: Type.split(".")[0], ResourceID, ParentID, Data }) as Event;

/** A shown query. Each read waits for the test, which answers the oldest. */
function show(queries: QueryClient, queryKey: readonly unknown[]) {
  const reads: PromiseWithResolvers<unknown>[] = [];
  const observer = new QueryObserver(queries, {
    queryKey,
    staleTime: Infinity,
    retry: false,
    queryFn: () => {
      const read = Promise.withResolvers<unknown>();
      reads.push(read);
      return read.promise;
    },
  });
  const stop = observer.subscribe(() => undefined);
  const data = (): unknown => queries.getQueryData(queryKey);
  const shows = (expected: unknown) =>
    waitUntil("the data", data, (found) => JSON.stringify(found) === JSON.stringify(expected));
  const isRead = () =>
    waitUntil(
      "a read",
      () => reads.length,
      (waiting) => waiting === 1,
    );
  const answer = (data: unknown): void => {
    const read = reads.shift();
    assert.ok(read, "nothing is being read");
    read.resolve(data);
  };
  const fail = async (error = new Error("no answer")): Promise<void> => {
    const read = reads.shift();
    assert.ok(read, "nothing is being read");
    read.reject(error);
    await waitUntil(
      "an error",
      () => queries.getQueryState(queryKey)?.status,
      (status) => status === "error",
    );
  };
  return { answer, fail, shows, isRead, stop, reads };
}

test("an event that arrives during the first read of an object is newer than the response", async () => {
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const server = show(queries, ["server", "one", 1]);
  await server.isRead();
  updates.apply([event(5, "server.changed", 1, { ID: 1, State: "Active" }), event(6, "server.changed", 2, { ID: 2 })]);
  server.answer({ ID: 1, State: "New" });
  await server.shows({ ID: 1, State: "Active" });
  server.stop();
});

test("an event that arrives during a later read of a list is not lost with the response", async () => {
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const list = show(queries, ["server", "list"]);
  await list.isRead();
  list.answer([{ ID: 1, State: "New" }, { ID: 2 }]);
  await list.shows([{ ID: 1, State: "New" }, { ID: 2 }]);
  updates.readAllAgain();
  await list.isRead();
  const [first, second] = [
    event(5, "server.changed", 1, { ID: 1, State: "Postponed" }),
    event(6, "server.changed", 1, { ID: 1, State: "Active" }),
  ];
  updates.apply([first]);
  updates.apply([second]);
  list.answer([{ ID: 1, State: "New" }, { ID: 2 }]);
  await list.shows([{ ID: 1, State: "Active" }, { ID: 2 }]);
  list.stop();
});

test("a list is read again after a read that may not contain a created object", async () => {
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const list = show(queries, ["action", "list", 1]);
  await list.isRead();
  updates.apply([event(5, "action.created", 8, { ID: 8 }, 1)]);
  // The pause ends while the first read is in progress.
  await new Promise((resolve) => setTimeout(resolve, 400));
  list.answer([]);
  await list.isRead();
  list.answer([{ ID: 8 }]);
  await list.shows([{ ID: 8 }]);
  assert.equal(list.reads.length, 0);
  list.stop();
});

test("after a gap, what is being read is read again", async () => {
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const one = show(queries, ["domain", "one", 3]);
  await one.isRead();
  updates.readAllAgain();
  one.answer({ ID: 3, Serial: 1 });
  await one.isRead();
  one.answer({ ID: 3, Serial: 2 });
  await one.shows({ ID: 3, Serial: 2 });
  one.stop();
});

test("a list that always changes is read again after a longer pause, once", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const read = context.mock.method(queries, "invalidateQueries", async () => undefined);
  queries.setQueryData(["audit"], []);
  for (let index = 0; index < 10; index++) {
    updates.readLater(["audit"]);
    context.mock.timers.tick(250);
  }
  assert.equal(read.mock.callCount(), 0);
  context.mock.timers.tick(3000);
  context.mock.timers.tick(250);
  assert.equal(read.mock.callCount(), 1);
  updates.readLater(["audit"]);
  updates.clear();
  context.mock.timers.tick(10_000);
  assert.equal(read.mock.callCount(), 1);
  queries.clear();
});

test("a list whose read failed is read again with the next event, or when the connection opens", async () => {
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const list = show(queries, ["server", "list"]);
  await list.isRead();
  list.answer([{ ID: 1, State: "New" }]);
  await list.shows([{ ID: 1, State: "New" }]);
  updates.apply([event(5, "server.created", 2, { ID: 2 })]);
  await list.isRead();
  await list.fail();
  updates.apply([event(6, "server.changed", 1, { ID: 1, State: "Active" })]);
  await list.isRead();
  await list.fail();
  updates.readFailedAgain();
  await list.isRead();
  list.answer([{ ID: 1, State: "Active" }, { ID: 2 }]);
  await list.shows([{ ID: 1, State: "Active" }, { ID: 2 }]);
  assert.equal(list.reads.length, 0);
  list.stop();
});

test("an object that does not exist is read again with an event of it, not when the connection opens", async () => {
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const [missing, failed] = [show(queries, ["server", "one", 1]), show(queries, ["server", "one", 2])];
  await Promise.all([missing.isRead(), failed.isRead()]);
  const problem = { code: "server_not_found", detail: "There is no server 1." } as Problem;
  await missing.fail(new ApiError("GET /server/1", 404, new Headers(), problem));
  await failed.fail(new ApiError("GET /server/2", 404, new Headers(), null));
  updates.readFailedAgain();
  await failed.isRead();
  assert.equal(missing.reads.length, 0);
  updates.apply([event(5, "server.created", 1, { ID: 1 })]);
  await missing.isRead();
  missing.answer({ ID: 1 });
  await missing.shows({ ID: 1 });
  for (const each of [missing, failed]) each.stop();
});

test("events of other objects do not make a list current that no page shows and that an object is missing in", async () => {
  const queries = new QueryClient();
  const updates = createCacheUpdates(queries);
  const list = show(queries, ["server", "list"]);
  await list.isRead();
  list.answer([{ ID: 1, State: "New" }]);
  await list.shows([{ ID: 1, State: "New" }]);
  list.stop();
  updates.apply([event(5, "server.created", 2, { ID: 2 })]);
  const isStale = (): boolean => queries.getQueryState(["server", "list"])?.isInvalidated === true;
  await waitUntil("the list is stale", isStale, (found) => found);
  updates.apply([event(6, "server.changed", 1, { ID: 1, State: "Active" })]);
  assert.deepEqual(queries.getQueryData(["server", "list"]), [{ ID: 1, State: "Active" }]);
  assert.ok(isStale());
});
