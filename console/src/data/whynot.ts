/** Whether a request to a server is possible now, from the state table of the contract, and what to do first. Pure. */
import { actionVerdicts, type EffectiveState, type ServerRequest } from "@brume/api/action.ts";
import type { Server } from "@brume/api/server.ts";
import type { Texts } from "../texts/en.ts";

const effectiveState = ({ State, IsPowerOn }: Server): EffectiveState => {
  if (State === "Active") return IsPowerOn ? "on" : "off";
  if (State === "New") return "on";
  return State === "NeedMoney" ? "Blocked" : State;
};

/** Returns why the request would be rejected now, or would change nothing; undefined: it is possible. */
export function whyNot(server: Server, request: ServerRequest, t: Texts): string | undefined {
  const state = effectiveState(server);
  const verdict = actionVerdicts[request][state];
  if (request === "Delete" && server.IsProtected) return t.server.deleteProtected;
  if (verdict !== "no" && verdict !== "same" && verdict !== "done") return undefined;
  const { notNow, alreadyOff } = t.servers;
  if (server.State === "New") return notNow.New;
  return state === "off" && verdict === "same" ? alreadyOff : notNow[state];
}
