/** The action of a server that runs now, as events have shown it: beside its name, and in the button that started it. */
import type { Action } from "@brume/api/action.ts";
import type { Server } from "@brume/api/server.ts";
import { useCell } from "../../data/cell.ts";
import { useData } from "../../data/data.tsx";
import { actionIsRunning } from "../../data/serverview.ts";
import { whyNot } from "../../data/whynot.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { State } from "../../ui/page.tsx";
import { useStartAction } from "./power.tsx";

/** Returns the type of the action that runs; undefined: none. */
function useRunning(id: number): Action["Type"] | undefined {
  const seen = new Set<number>();
  for (const { Resource, ResourceID, ParentID, Data } of useCell(useData().recent)) {
    // The newest event of an action comes first.
    if (Resource !== "action" || ParentID !== id || seen.has(ResourceID)) continue;
    seen.add(ResourceID);
    const action = Data as Action | null;
    if (action !== null && actionIsRunning(action)) return action.Type;
  }
  return undefined;
}

export function RunningState({ server: { ID, State: state } }: { server: Server }) {
  const t = useTexts();
  const type = useRunning(ID);
  // Other states name their work themselves.
  return type !== undefined && state === "Active" && <State tone="busy">{t.servers.running[type]}</State>;
}

/** Turns the server on or off. */
export function PowerButton({ server }: { server: Server }) {
  const t = useTexts();
  const { run, isBusy } = useStartAction();
  const running = useRunning(server.ID);
  const main = server.IsPowerOn ? "ShutDownGuestOS" : "PowerOn";
  return (
    <Button
      icon={server.IsPowerOn ? "power" : "play"}
      isBusy={isBusy || running === main}
      disabled={whyNot(server, main, t) !== undefined}
      onClick={() => void run({ server, type: main }).catch(() => undefined)}
    >
      {t.servers.actions[main]}
    </Button>
  );
}
