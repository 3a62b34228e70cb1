/** The actions of servers that run now or ended lately, with their steps, and a message when one ends. */
import type { Action } from "@brume/api/action.ts";
import type { Event } from "@brume/api/event.ts";
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { useCell } from "../data/cell.ts";
import { useData } from "../data/data.tsx";
import { namesOf } from "../data/eventnames.ts";
import { queriesOf } from "../data/queries.ts";
import { actionIsRunning, actionName, actionState, stepViews } from "../data/serverview.ts";
import { loadDetails } from "../texts/detail.ts";
import { useFormat, useTexts } from "../texts/texts.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogHead } from "../ui/dialog.tsx";
import { Meter, State, Steps } from "../ui/page.tsx";
import { useDropToasts, useToast } from "../ui/toast.tsx";

/** Ended actions that stay in the list. */
const mostShown = 30;

/** Returns whether the end of an action is new to the user: not that of a change of a name or label, whose action has no step. */
const isWork = ({ Type, Steps: steps, Error: error }: Action): boolean =>
  Type !== "Delete" && (steps.length > 0 || error !== null);

/** Returns the last state of each action that events have shown, the newest first. */
function useActions(recent: readonly Event[]): readonly Action[] {
  return useMemo(() => {
    const seen = new Map<number, Action>();
    for (const { Resource, ResourceID, Data } of recent)
      if (Resource === "action" && Data !== null && !seen.has(ResourceID)) seen.set(ResourceID, Data as Action);
    return [...seen.values()].sort((a, b) => b.ID - a.ID).slice(0, mostShown);
  }, [recent]);
}

export function RunningActions() {
  const t = useTexts();
  const { client, queries, recent: cell, arrived } = useData();
  const recent = useCell(cell);
  const actions = useActions(recent);
  const toast = useToast();
  const drop = useDropToasts();
  const [isOpen, setOpen] = useState(false);
  const running = actions.filter(actionIsRunning);
  const nameOf = (id: number): string | undefined =>
    queries.getQueryData<Server>(["server", "one", id])?.Name ??
    queries.getQueryData<readonly Server[]>(["server", "list"])?.find(({ ID }) => ID === id)?.Name ??
    namesOf(recent).get(`server ${id}`);

  const readName = async (id: number): Promise<string> => {
    try {
      return (await queries.query(queriesOf(client).server(id))).Name;
    } catch {
      return `#${id}`;
    }
  };

  // After a gap in the events the end of an action may never be shown.
  useEffect(() => {
    if (recent.length === 0) drop(({ kind }) => kind === "busy");
  }, [recent, drop]);

  const announce = async (action: Action): Promise<void> => {
    const { ID, Type, State: state, Error: error, ServerID } = action;
    const name = nameOf(ServerID) ?? (await readName(ServerID));
    const isGood = state === "Completed";
    const text = !isGood
      ? t.servers.endedBadly(actionName(action, t), name)
      : Type in t.servers.finished
        ? t.servers.finished[Type as keyof typeof t.servers.finished](name)
        : t.servers.ended(actionName(action, t), name);
    const message = { kind: isGood ? "good" : "bad", text, key: `action:${ID}` } as const;
    if (error === null) return toast(message);
    await loadDetails();
    toast({ ...message, detail: t.errors.detail(error.detail) });
  };
  // `recent` may not contain an end that arrived together with many other events.
  useEffect(() =>
    arrived.subscribe(() => {
      for (const { Type, Data } of arrived.get())
        if (Type === "action.ended" && isWork(Data as Action)) void announce(Data as Action);
    }),
  );

  return (
    <>
      <Button
        kind="quiet"
        icon={running.length > 0 ? "busy" : "wait"}
        aria-label={running.length > 0 ? t.running.open(running.length) : t.running.title}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        {running.length > 0 && <span className="count number">{running.length}</span>}
      </Button>
      {isOpen && (
        <Dialog label={t.running.title} kind="drawer" onClose={() => setOpen(false)}>
          <div className="inner">
            <DialogHead title={t.running.title} onClose={() => setOpen(false)} />
            {actions.length === 0 && <p className="muted">{t.running.none}</p>}
            <ul className="list">
              {actions.map((action) => (
                <li key={action.ID} className="stack tight">
                  <ActionView action={action} />
                  <Link
                    to="/servers/$id"
                    params={{ id: String(action.ServerID) }}
                    className="break"
                    onClick={() => setOpen(false)}
                  >
                    <OnServer id={action.ServerID} known={nameOf(action.ServerID)} />
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** The server of an action. Its name is read unless something has shown it. */
function OnServer({ id, known }: { id: number; known: string | undefined }) {
  const t = useTexts();
  const { data } = useQuery({ ...queriesOf(useData().client).server(id), enabled: known === undefined });
  return t.running.on(known ?? data?.Name ?? `#${id}`);
}

/** One action with its state, progress and steps. */
function ActionView({ action }: { action: Action }) {
  const t = useTexts();
  const format = useFormat();
  const { Progress, StartDate, EndDate } = action;
  const isRunning = actionIsRunning(action);
  const { tone, word } = actionState(action, t);
  return (
    <>
      <div className="line apart">
        <strong>{actionName(action, t)}</strong>
        <span className="line">
          <span className="muted small number">{format.seconds(StartDate, EndDate)}</span>
          <State tone={tone}>{word}</State>
        </span>
      </div>
      {isRunning && <Meter label={actionName(action, t)} value={Progress} limit={100} isProgress />}
      {isRunning && <Steps steps={stepViews(action, t, format)} />}
      {action.Error !== null && <p className="break small">{t.errors.detail(action.Error.detail)}</p>}
    </>
  );
}
