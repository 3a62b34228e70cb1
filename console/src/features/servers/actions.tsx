/** The actions of a server, the newest first, with the steps of those that run or have failed. */
import { type Action, cancelable } from "@brume/api/action.ts";
import { useQuery } from "@tanstack/react-query";
import { useChange } from "../../data/change.ts";
import { useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { actionIsRunning, actionName, actionState, stepViews } from "../../data/serverview.ts";
import { Unread } from "../../data/unread.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Skeleton } from "../../ui/feedback.tsx";
import { Meter, Panel, State, Steps } from "../../ui/page.tsx";

export function ServerActions({ id, most = Number.POSITIVE_INFINITY }: { id: number; most?: number }) {
  const t = useTexts();
  const read = useQuery(queriesOf(useData().client).actions(id));
  const actions = read.data;
  return (
    <Panel title={t.server.tabs.actions} isFlush>
      {actions === undefined ? (
        <div className="body">{read.error ? <Unread of={[read]} /> : <Skeleton lines={3} />}</div>
      ) : actions.length === 0 ? (
        <p className="body muted">{t.server.noActions}</p>
      ) : (
        <ul className="list padded">
          {actions.slice(0, most).map((action) => (
            <ActionRow key={action.ID} action={action} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function ActionRow({ action }: { action: Action }) {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const mayWrite = useMay("server:write");
  const { ID, ServerID, Type, State: state, Progress, StartDate, EndDate } = action;
  const { run, isBusy } = useChange(() => client.cancelAction({ path: { id: ServerID, actionID: ID } }));
  const isRunning = actionIsRunning(action);
  const { tone, word } = actionState(action, t);
  return (
    <li className="stack tight">
      <div className="line apart">
        <strong>{actionName(action, t)}</strong>
        <span className="line">
          <time className="muted small" dateTime={StartDate} title={format.time(StartDate)}>
            {format.ago(StartDate)}
          </time>
          <span className="muted small number">{format.seconds(StartDate, EndDate)}</span>
          <State tone={tone}>{word}</State>
          {mayWrite && cancelable[state]?.includes(Type) && (
            <Button size="small" isBusy={isBusy} onClick={() => void run(undefined).catch(() => undefined)}>
              {t.server.cancelAction}
            </Button>
          )}
        </span>
      </div>
      {isRunning && <Meter label={actionName(action, t)} value={Progress} limit={100} isProgress />}
      {(isRunning || state === "Failed") && <Steps steps={stepViews(action, t, format)} />}
      {action.Error !== null && <p className="break small">{t.errors.detail(action.Error.detail)}</p>}
    </li>
  );
}
