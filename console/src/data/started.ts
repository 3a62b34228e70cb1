/** The message of an action that was started. The message of its end takes its place. */
import type { Action } from "@brume/api/action.ts";
import type { Toast } from "../ui/toast.tsx";
import { useData } from "./data.tsx";
import { actionIsRunning } from "./serverview.ts";

/** Returns the function that makes the message. */
export function useStarted() {
  const { recent } = useData();
  return ({ ID }: Action, text: string): Toast | undefined => {
    const last = recent.get().find(({ Resource, ResourceID }) => Resource === "action" && ResourceID === ID);
    // The event of the end may come before the response.
    if (last !== undefined && !actionIsRunning(last.Data as Action)) return undefined;
    return { kind: "busy", text, key: `action:${ID}` };
  };
}
