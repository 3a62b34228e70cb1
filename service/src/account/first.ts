/** Creates the first project and token, so that a new installation has an administrator. */
import { scopes } from "@brume/api/operation.ts";
import type { Clock } from "../base/clock.ts";
import { hashToken } from "../base/secret.ts";
import type { Store } from "../store/db.ts";
import { lock } from "../store/db.ts";
import { findToken, insertProject, insertToken, listProjects } from "./table.ts";

/**
 * Creates project 1 `default` and token 1 with all scopes and the given value. At later starts it updates token 1 to the value: an operator
 * who may set it has full control of the host. A deleted token 1 is not restored. Resolves to whether `value` is valid.
 */
export async function ensureFirst(store: Store, clock: Clock, value: string): Promise<boolean> {
  const hash = hashToken(value);
  return store.write(async (tx) => {
    await lock(tx, "first");
    const created = clock.now();
    if ((await listProjects(tx)).length === 0) {
      const project = await insertProject(tx, {
        name: "default",
        created,
        quotas: "{}",
        labels: "{}",
        is_blocked: 0,
        version: 1,
      });
      await insertToken(tx, {
        project_id: project.id,
        name: "first",
        hash,
        scopes: JSON.stringify(scopes),
        is_admin: 1,
        created,
        labels: "{}",
        version: 1,
      });
      return true;
    }
    const first = await findToken.first(tx, { id: 1 });
    if (first === undefined) return false;
    if (first.hash !== hash) await tx.updateTable("token").set({ hash }).where("id", "=", 1).execute();
    return true;
  });
}
