/** What servers and actions look like: their states and steps. */
import type { Action } from "@brume/api/action.ts";
import type { Server } from "@brume/api/server.ts";
import type { Texts } from "../texts/en.ts";
import type { Format } from "../texts/format.ts";
import type { StepView, Tone } from "../ui/page.tsx";

/** Returns true until the action has ended. */
export const actionIsRunning = ({ State }: Action): boolean => State === "InProgress" || State === "Postponed";

/** Name of an action. A change that needs no step on the host, such as of the backup, is an action of the type `Resize` too. */
export const actionName = ({ Type, Steps }: Pick<Action, "Type"> & Partial<Action>, t: Texts): string =>
  Type === "Resize" && Steps?.length === 0 ? t.servers.changeSettings : t.servers.actionNames[Type];

/** State of an action as one word with its look. */
export function actionState(action: Action, t: Texts): { readonly tone: Tone; readonly word: string } {
  const { State } = action;
  const ended = State === "Completed" ? "good" : State === "Failed" ? "bad" : "quiet";
  return { tone: actionIsRunning(action) ? "busy" : ended, word: t.servers.actionStates[State] };
}

/** State of a server as one word with its look. */
export function serverState(server: Server, t: Texts): { readonly tone: Tone; readonly word: string } {
  const { State, IsPowerOn, Condition } = server;
  const words = t.servers.states;
  if (State === "Active" && Condition !== "Normal") return { tone: "warn", word: words[Condition] };
  if (State === "Active") return IsPowerOn ? { tone: "good", word: words.on } : { tone: "quiet", word: words.off };
  if (State === "New" || State === "Deleting") return { tone: "busy", word: words[State] };
  return { tone: State === "Failed" ? "bad" : "warn", word: words[State] };
}

/** Steps of an action for the list of steps. */
export const stepViews = ({ Steps }: Action, t: Texts, format: Format): StepView[] =>
  Steps.map(({ Name, State, Detail, StartDate, EndDate }) => ({
    name: t.servers.steps[Name] ?? Name,
    state: State,
    word: t.servers.stepStates[State],
    detail: t.errors.detail(Detail),
    time: StartDate === null || State === "Pending" ? undefined : format.seconds(StartDate, EndDate),
  }));

/** Address of a server that its user connects to. */
export const addressOf = ({ IP, PrimaryNetworkIp }: Server): string => IP || PrimaryNetworkIp;
