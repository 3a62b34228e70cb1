/** Changes: run one, report how it ended, and show its errors. */
import { useMutation } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import { useTexts } from "../texts/texts.tsx";
import { type Toast, useToast } from "../ui/toast.tsx";
import { errorText } from "./errortext.ts";

interface ChangeOptions<Input, Answer> {
  /** Message of the success; absent: none. */
  readonly done?: (answer: Answer, input: Input) => string | Toast | undefined;
  readonly onDone?: (answer: Answer, input: Input) => void;
  /** Returns what undoes the change; it is offered with the message of the success. Undefined: it cannot be undone. */
  readonly undo?: ((answer: Answer, input: Input) => Undo | undefined) | undefined;
  /** The form shows the error itself. */
  readonly isQuiet?: boolean;
  /**
   * What the form would send. After a change of it, the error of the last try is about something else and ends. A try that runs continues:
   * its own effect may change the request before the response.
   */
  readonly request?: unknown;
}

/** What undoes a change. It is offered only on the page of the change, and while its object exists. */
export interface Undo {
  readonly run: () => Promise<unknown>;
  /** Message of its success, which names the object. */
  readonly done: string;
  /** Kind and id of the object: `server:3`. */
  readonly of: string;
  /** End of the address of the page that the change leads to; absent: it stays on its page. */
  readonly page?: string;
}

/** Returns a function that runs the change and rejects with its error, whether it runs, and the last error. */
export function useChange<Input, Answer>(
  run: (input: Input) => Promise<Answer>,
  options: ChangeOptions<Input, Answer> = {},
) {
  const t = useTexts();
  const toast = useToast();
  const report = (error: unknown): void => {
    const { title, cause, requestId } = errorText(error, t);
    toast({ kind: "bad", text: title, detail: requestId === "" ? cause : `${cause} (${requestId})` });
  };
  const { mutateAsync, isPending, error, reset } = useMutation({
    mutationFn: ({ input, start }: Started<Input, Answer>) => start.run(input),
    onSuccess(answer, { input, start: { options: of, page } }) {
      const done = of.done?.(answer, input);
      const back = of.undo?.(answer, input);
      // The user may have left the page before the response.
      const offer = page === location.pathname &&
        back !== undefined && {
          text: t.common.undo,
          run: () => void back.run().then(() => toast({ kind: "good", text: back.done }), report),
          page: back.page ?? page,
          of: back.of,
        };
      if (typeof done === "string") toast({ kind: "good", text: done, ...(offer && { undo: offer }) });
      else if (done !== undefined) toast(done);
      of.onDone?.(answer, input);
    },
    onError(failure, { start }) {
      if (start.options.isQuiet !== true) report(failure);
    },
  });
  const request = JSON.stringify(options.request);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs after each change of the request
  useEffect(() => {
    if (request !== undefined && !isPending) reset();
  }, [request, reset]);
  // What the page knew when the change began: an event may change the object before the response, and undo needs the state before.
  const latest = useRef({ run, options });
  latest.current = { run, options };
  const begin = useCallback(
    (input: Input) => mutateAsync({ input, start: { ...latest.current, page: location.pathname } }),
    [mutateAsync],
  );
  return { run: begin, isBusy: isPending, error };
}

interface Started<Input, Answer> {
  readonly input: Input;
  readonly start: {
    readonly run: (input: Input) => Promise<Answer>;
    readonly options: ChangeOptions<Input, Answer>;
    /** Address of the page. */
    readonly page: string;
  };
}
