/** Appends events about the certificate of the API. They belong to no project; the administrators of the first one receive them. */
import type { Clock } from "../base/clock.ts";
import { append } from "../engine/event.ts";
import type { Store } from "../store/db.ts";

/** Creates the function that appends an event. It rejects if the event cannot be stored. */
export const createCertificateEvents =
  (store: Store, clock: Clock, names: readonly string[]) =>
  (type: "certificate.changed" | "certificate.failed", detail: string): Promise<void> =>
    store.write(async (tx) => {
      const first = await tx
        .selectFrom("project")
        .select((e) => e.fn.min("id").as("id"))
        .executeTakeFirst();
      const data = JSON.stringify({ Names: names, Detail: detail });
      const date = clock.now();
      await append(tx, [{ type, date, project: first?.id ?? 1, resource: "certificate", id: 1, data }]);
    });
