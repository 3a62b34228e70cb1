/** Sends a request to each of several servers, after it was shown, and shows how far each is and why one has failed. */
import type { RequestType } from "@brume/api/action.ts";
import type { Server } from "@brume/api/server.ts";
import { type SubmitEvent, useEffect, useRef, useState } from "react";
import { useData } from "../../data/data.tsx";
import type { Request } from "../../data/equivalent.ts";
import { errorText } from "../../data/errortext.ts";
import { changeLabels, type LabelChange, type Labels, readKeys, readLabels } from "../../data/label.ts";
import { eachOf, type Phase, type Progress, useMany } from "../../data/many.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { hasFields, useUndo } from "../../data/undo.ts";
import { whyNot } from "../../data/whynot.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { Meter, State, type Tone } from "../../ui/page.tsx";
import { useToast } from "../../ui/toast.tsx";

export type BulkKind = Extract<RequestType, "PowerOn" | "ShutDownGuestOS" | "PowerReboot"> | "Delete" | "Labels";

/** Servers that the list shows; those that failed are first. */
const mostShown = 100;

const tones: Readonly<Record<Phase, Tone>> = {
  waiting: "quiet",
  sending: "busy",
  running: "busy",
  done: "good",
  failed: "bad",
};
const order: readonly Phase[] = ["failed", "sending", "running", "waiting", "done"];

interface BulkDialogProps {
  readonly kind: BulkKind;
  /** As they were when the dialog opened: deleted ones disappear from the list of the page. */
  readonly servers: readonly Server[];
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export function BulkDialog({ kind, servers, onDone, onClose }: BulkDialogProps) {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const toast = useToast();
  const undo = useUndo();
  const { progress, run, stop } = useMany();
  const [typed, setTyped] = useState("");
  const [add, setAdd] = useState("");
  const [remove, setRemove] = useState("");
  const words = t.servers.bulk;
  const change: LabelChange = { add: readLabels(add), remove: readKeys(remove) };
  const whyNotNow = (server: Server) => (kind === "Labels" ? undefined : whyNot(server, kind, t));
  const able = servers.filter((server) => whyNotNow(server) === undefined);
  const requestOf = (server: Server): Request => {
    const path = { id: server.ID };
    if (kind === "Delete") return { operation: "deleteServer", path };
    if (kind === "Labels")
      return { operation: "updateServer", path, body: { Labels: changeLabels(server.Labels, change) } };
    return { operation: "startAction", path, body: { Type: kind } };
  };
  // By server: its labels before and after the change.
  const labels = useRef(new Map<number, { readonly before: Labels; readonly after: Labels }>());
  const send = async (id: number) => {
    const path = { id };
    if (kind === "Delete") {
      await client.deleteServer({ path });
      return { deletion: id };
    }
    if (kind !== "Labels") return { action: (await client.startAction({ path, body: { Type: kind } })).ID };
    // An edit replaces all labels, and another client may have changed them since the dialog opened.
    const { answer, etag } = await client.raw.readServer({ path });
    const after = changeLabels(answer.Labels, change);
    await client.updateServer({ path, body: { Labels: after } }, etag === null ? {} : { ifMatch: etag });
    labels.current.set(id, { before: answer.Labels, after });
    return null;
  };
  const restore = async (): Promise<void> => {
    const errors: unknown[] = [];
    await eachOf([...labels.current], async ([id, { before, after }]) => {
      const restoreOne = undo({
        read: () => client.raw.readServer({ path: { id } }),
        isSame: (now) => hasFields(now, { Labels: after }),
        write: (sure) => client.updateServer({ path: { id }, body: { Labels: before } }, sure),
      });
      await restoreOne().catch((error: unknown) => errors.push(error));
    });
    if (errors.length === 0) toast({ kind: "good", text: words.undone(labels.current.size) });
    else toast({ kind: "bad", text: words.notUndone(errors.length), detail: reasonOf(errors[0], t) });
  };
  const count = (phase: Phase): number => [...progress.values()].filter((one) => one.phase === phase).length;
  const isStarted = progress.size > 0;
  const [done, failed] = [count("done"), count("failed")];
  const isOver = isStarted && done + failed === progress.size;
  useEffect(() => {
    if (!isOver || failed > 0) return;
    const [only] = labels.current.keys();
    const offer = {
      text: t.common.undo,
      run: () => void restore(),
      page: location.pathname,
      of: labels.current.size === 1 ? `server:${only}` : "",
    };
    toast({
      kind: "good",
      text: kind === "Delete" ? words.deleted(done) : words.done(done),
      undo: kind === "Labels" ? offer : undefined,
    });
    onDone();
    onClose();
  }, [isOver, failed]);
  const title = words.titles[kind](able.length);
  const isReady =
    able.length > 0 &&
    (kind !== "Delete" || typed === words.word) &&
    (kind !== "Labels" || Object.keys(change.add).length + change.remove.length > 0);
  const start = (ids: readonly number[]) => void run(ids, send);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    start(able.map(({ ID }) => ID));
  };
  const broken = [...progress].filter(([, { phase }]) => phase === "failed").map(([id]) => id);
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <form onSubmit={submit}>
        <DialogHead title={title} onClose={onClose} />
        {kind === "Delete" && <p>{words.deleteAbout}</p>}
        {kind === "Labels" && !isStarted && (
          <div className="columns">
            <TextField
              label={words.addLabels}
              placeholder="stage=test, team=web"
              value={add}
              onChange={({ target }) => setAdd(target.value)}
            />
            <TextField
              label={words.removeLabels}
              placeholder="stage, team"
              value={remove}
              onChange={({ target }) => setRemove(target.value)}
            />
          </div>
        )}
        {isStarted && (
          <div className="stack tight">
            <span role="status" className="number">
              {words.progress(format.number(done), format.number(progress.size))}
              {failed > 0 && ` · ${words.failed(failed)}`}
            </span>
            <Meter label={title} value={done + failed} limit={progress.size} isProgress />
          </div>
        )}
        <ServerLines servers={servers} progress={progress} whyNot={whyNotNow} />
        {kind === "Delete" && !isStarted && (
          <TextField
            label={t.common.typeToConfirm(words.word)}
            value={typed}
            autoFocus
            spellCheck={false}
            onChange={({ target }) => setTyped(target.value)}
          />
        )}
        {!isStarted && isReady && <RequestPanel request={able.map(requestOf)} />}
        <div className="line end">
          <Button
            onClick={() => {
              stop();
              onClose();
            }}
          >
            {isOver ? t.common.close : isStarted ? words.stop : t.common.cancel}
          </Button>
          {isOver && failed > 0 ? (
            <Button kind="primary" onClick={() => start(broken)}>
              {t.common.retry}
            </Button>
          ) : (
            <Button
              type="submit"
              kind={kind === "Delete" ? "danger primary" : "primary"}
              isBusy={isStarted && !isOver}
              disabled={!isReady || isStarted}
            >
              {kind === "Delete" ? t.common.delete : words[kind]}
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

interface LinesProps {
  readonly servers: readonly Server[];
  readonly progress: ReadonlyMap<number, Progress>;
  readonly whyNot: (server: Server) => string | undefined;
}

/** The servers with their progress, those that failed first, then those that are left out. */
function ServerLines({ servers, progress, whyNot: whyNotNow }: LinesProps) {
  const t = useTexts();
  const rank = ({ ID }: Server): number => order.indexOf(progress.get(ID)?.phase ?? "waiting");
  const shown = servers.toSorted((a, b) => rank(a) - rank(b)).slice(0, mostShown);
  return (
    <ul className="list bulk-list" tabIndex={0} aria-label={t.servers.title}>
      {shown.map((server) => {
        const now = progress.get(server.ID);
        const why = now === undefined ? whyNotNow(server) : undefined;
        const reason = now?.error === undefined ? why : reasonOf(now.error, t);
        return (
          <li key={server.ID} className="stack tight">
            <div className="line apart">
              <span className="break">{server.Name}</span>
              {now !== undefined && <State tone={tones[now.phase]}>{t.servers.bulk.phases[now.phase]}</State>}
              {why !== undefined && <State tone="quiet">{t.servers.bulk.leftOut}</State>}
            </div>
            {reason !== undefined && <p className="muted small break">{reason}</p>}
          </li>
        );
      })}
      {servers.length > mostShown && <li className="muted">{t.servers.bulk.more(servers.length - mostShown)}</li>}
    </ul>
  );
}

/** An error of an action is a sentence already. */
function reasonOf(error: unknown, t: ReturnType<typeof useTexts>): string {
  return error instanceof Error && error.constructor === Error
    ? t.errors.detail(error.message)
    : errorText(error, t).cause;
}
