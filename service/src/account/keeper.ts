/** Forgets what the audit need not keep any longer (docs/spec.md#audit). */
import type { Clock } from "../base/clock.ts";
import { type Keeper, keeper } from "../engine/flow.ts";
import type { Store } from "../store/db.ts";
import { pruneAudit } from "./table.ts";

const day = 86_400_000;
const keptDays = 365;

export function auditKeeper(store: Store, clock: Clock): Keeper {
  return keeper({
    name: "account.audit",
    subject: "service",
    single: true,
    period: day / 24,
    async run() {
      await store.write((tx) => pruneAudit(tx, clock.now() - keptDays * day));
    },
  });
}
