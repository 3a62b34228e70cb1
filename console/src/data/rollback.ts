/** Notices that firewall rules which waited for a confirmation were rolled back. */
import type { PublicNetwork } from "@brume/api/network.ts";
import { useEffect, useRef } from "react";
import { type RuleSet, ruleSetOf, setText } from "./firewall.ts";

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
