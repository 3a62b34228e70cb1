/**
 * A dialog that sends one request: its fields, checked by the service as one types, the errors at their fields, and the request as command,
 * curl and TypeScript.
 */
import { ApiError, type ChangeOptions } from "@brume/api/client.ts";
import type { ReactNode, SubmitEvent } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogHead } from "../ui/dialog.tsx";
import { focusInvalid } from "../ui/field.tsx";
import type { Toast } from "../ui/toast.tsx";
import { type Undo, useChange } from "./change.ts";
import { useDryRun } from "./dryrun.ts";
import type { Request } from "./equivalent.ts";
import { placeErrors } from "./errortext.ts";
import { RequestPanel } from "./requestpanel.tsx";
import { Unplaced } from "./unplaced.tsx";

interface FormDialogProps<Answer> {
  readonly title: string;
  readonly about?: ReactNode;
  /** Text of the button. */
  readonly action: string;
  readonly kind?: "wide";
  /** The request; it is checked and shown when it is complete. */
  readonly request: Request;
  readonly isComplete: boolean;
  /** The request is checked already; absent: when it is complete. */
  readonly isChecked?: boolean;
  /** Sends the request. The options of a check ask for a dry run. */
  readonly send: (options: ChangeOptions) => Promise<Answer>;
  /** Message of the success. */
  readonly done?: (answer: Answer) => string | Toast | undefined;
  /** Returns what else one can do after an error with this code. */
  readonly remedy?: (code: string) => ReactNode;
  /** Returns what undoes the change; it is offered with the message of the success. */
  readonly undo?: (answer: Answer) => Undo | undefined;
  readonly onDone?: (answer: Answer) => void;
  readonly onClose: () => void;
  /** The fields. `error` returns the error at a pointer, or of an element below it. */
  readonly children: (error: (pointer: string) => string | undefined) => ReactNode;
}

/** The dialog stays open if `onDone` is set, which closes it. */
export function FormDialog<Answer>(props: FormDialogProps<Answer>) {
  const { title, about, action, kind, request, isComplete, isChecked = isComplete, send } = props;
  const { done, remedy, undo, onDone, onClose, children } = props;
  const t = useTexts();
  const change = useChange(() => send({}), {
    ...(done && { done }),
    undo,
    onDone: onDone ?? onClose,
    isQuiet: true,
    request,
  });
  // What the request has created would make a check of it fail.
  const input = isChecked && !change.isBusy ? request : null;
  const check = useDryRun(input, (_, signal) => send({ dryRun: true, signal }));
  const error = change.error ?? check.error;
  const errors = placeErrors(error, t);
  const fields = children(errors.at);
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    change.run(undefined).catch(() => focusInvalid(form));
  };
  return (
    <Dialog label={title} kind={kind} onClose={onClose}>
      <form onSubmit={submit}>
        <DialogHead title={title} onClose={onClose} />
        {about !== undefined && <p className="muted">{about}</p>}
        {fields}
        <Unplaced error={error} errors={errors} />
        {error instanceof ApiError && remedy?.(error.code)}
        {isComplete && <RequestPanel request={request} />}
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={change.isBusy} disabled={!isComplete}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
