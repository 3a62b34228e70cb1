/** A dialog before a request that cannot be undone: what it does, and the request as command, curl and TypeScript. */
import type { ReactNode } from "react";
import { Confirm } from "../ui/dialog.tsx";
import type { Toast } from "../ui/toast.tsx";
import { useChange } from "./change.ts";
import type { Request } from "./equivalent.ts";
import { RequestPanel } from "./requestpanel.tsx";

interface ConfirmRequestProps<Answer> {
  readonly title: string;
  /** Text of the button. */
  readonly action: string;
  /** Text that must be typed before; absent: none. */
  readonly typed?: string;
  readonly request: Request;
  readonly send: () => Promise<Answer>;
  /** Message of the success; absent: the end of the action that was started has its own. */
  readonly done?: (answer: Answer) => string | Toast | undefined;
  readonly onDone?: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function ConfirmRequest<Answer>(props: ConfirmRequestProps<Answer>) {
  const { request, send, done, onDone, children, ...rest } = props;
  const { run } = useChange(send, { ...(done && { done }), ...(onDone && { onDone }) });
  return (
    <Confirm {...rest} onConfirm={() => run(undefined)}>
      <div className="stack tight">{children}</div>
      <RequestPanel request={request} />
    </Confirm>
  );
}
