/** Messages between the thread of the service and the thread that speaks ACME. */
import type { Challenge, KeyPair, Order } from "./interface.ts";

/** What the thread does; `workerData`. */
export type Work =
  | { readonly kind: "order"; readonly order: Order }
  | { readonly kind: "selfSign"; readonly names: readonly string[]; readonly days: number }
  | { readonly kind: "createAccountKey" };

/** From the thread. After `challenges` it waits for a message, which has no content. */
export type Report =
  | { readonly kind: "challenges"; readonly challenges: readonly Challenge[] }
  | { readonly kind: "pair"; readonly pair: KeyPair }
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "failed"; readonly reason: string };
