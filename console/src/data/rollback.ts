/** Firewall rules that wait for a confirmation: notices that they were rolled back, and rolls them back before that. */
import type { Client } from "@brume/api/client.ts";
import type { Firewall } from "@brume/api/firewall.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import { useEffect, useRef } from "react";
import type { Texts } from "../texts/en.ts";
import { Conflict } from "./errortext.ts";
import { editsOf, type RuleSet, requestOf, ruleSetOf, setText } from "./firewall.ts";

/** Rules that a user edits: the stored set when the edits began, and the edited one. */
export interface FirewallDraft {
  readonly base: RuleSet;
  readonly set: RuleSet;
}

/** Returns the draft that applies rules again after they were rolled back. */
export function draftAgain({ Firewall }: PublicNetwork, rules: RuleSet): FirewallDraft {
  const base = ruleSetOf(Firewall);
  return { base, set: editsOf(base, rules) };
}

/** Name of the draft of a network. */
export const draftName = (id: number): string => `publicnetwork:${id}`;

/** Returns the key of the message that the rules of a network were rolled back. */
export const rollBackKey = (id: number): string => `rollback:${id}`;

/** Milliseconds by which the clocks of browser and service may differ. */
const tolerance = 5000;

/** Calls `onRollBack` with each network whose rules were not confirmed in time, and with these rules. Rules that a client replaced earlier do not count. */
export function useRollBack(
  networks: readonly PublicNetwork[],
  onRollBack: (network: PublicNetwork, rules: RuleSet) => void,
): void {
  const waiting = useRef(new Map<number, { readonly by: number; readonly rules: RuleSet }>());
  const latest = useRef(onRollBack);
  latest.current = onRollBack;
  useEffect(() => {
    for (const network of networks) {
      const { Id, Firewall } = network;
      const before = waiting.current.get(Id);
      const rules = ruleSetOf(Firewall);
      if (Firewall.ConfirmBy !== null) waiting.current.set(Id, { by: Date.parse(Firewall.ConfirmBy), rules });
      else if (waiting.current.delete(Id) && before !== undefined)
        if (Date.now() > before.by - tolerance && setText(rules) !== setText(before.rules))
          latest.current(network, before.rules);
    }
  }, [networks]);
}

/** Events of a network that are searched for its last confirmed rules. */
const mostSearched = 100;

/**
 * Returns the last confirmed rules, which the end of the time would restore; null: unknown. No response contains them, but the events do,
 * unless there are too many rules for an event.
 */
async function readConfirmed(client: Client, id: number): Promise<RuleSet | null> {
  const query = { resource: `publicnetwork:${id}`, newest: true, limit: mostSearched };
  for (const { Data } of await client.listEvents({ query })) {
    const firewall = (Data as { readonly Firewall?: Firewall & { readonly Omitted?: number } } | null)?.Firewall;
    if (firewall?.ConfirmBy === null) return (firewall.Omitted ?? 0) > 0 ? null : ruleSetOf(firewall);
  }
  return null;
}

/** Restores the last confirmed rules at once. Throws a conflict if they are unknown, or if no rules wait any more: another client may have confirmed them. */
export async function rollBack(client: Client, id: number, t: Texts): Promise<void> {
  const path = { id };
  const { answer, etag } = await client.raw.readPublicNetwork({ path });
  if (answer.Firewall.ConfirmBy === null) throw new Conflict(t.errors.changedSince);
  const confirmed = await readConfirmed(client, id);
  if (confirmed === null) throw new Conflict(t.firewall.unknownRules);
  await client.configureFirewall({ path, body: requestOf(confirmed) }, etag === null ? {} : { ifMatch: etag });
}
