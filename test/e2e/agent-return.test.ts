/** The service applies all networks after a restart of the drivers, also if the database cannot store the request at first. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageError, type Store } from "../../service/src/store/db.ts";
import { createTestService } from "../support/testservice.ts";
import { waitUntil } from "../support/waituntil.ts";

test("networks are applied after a restart of the drivers, also if the database fails once", async () => {
  let failing = 0;
  const watch = (store: Store): Store => ({
    ...store,
    write: ((...args: Parameters<Store["write"]>) => {
      if (failing === 0) return store.write(...args);
      failing -= 1;
      return Promise.reject(new StorageError("the disk is full", { isFull: true }));
    }) as Store["write"],
  });
  let applied = 0;
  let notify: (isNew: boolean) => void = () => {};
  const brume = await createTestService("sqlite", {
    watch,
    onReturn: (listener) => void (notify = listener),
    wrapDriver: (driver, group) =>
      group !== "router"
        ? driver
        : new Proxy(driver, {
            get: (target, name: string) => {
              if (name === "apply") applied += 1;
              return Reflect.get(target, name) as unknown;
            },
          }),
  });
  try {
    const count = () => applied;
    await waitUntil("the networks of the start", count, (times) => times > 0);
    // The same drivers have kept their networks.
    notify(false);
    const before = applied;
    failing = 1;
    notify(true);
    assert.equal(failing, 0);
    await waitUntil("the networks after the restart", count, (times) => times > before);
  } finally {
    await brume.close();
  }
});
