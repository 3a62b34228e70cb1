/** Changes: run one, report how it ended, and show its errors. */
import { useMutation } from "@tanstack/react-query";
import { useTexts } from "../texts/texts.tsx";
import { useToast } from "../ui/toast.tsx";
import { troubleOf } from "./trouble.ts";

interface ChangeOptions<Input, Answer> {
  /** Message of the success; absent: none. */
  readonly done?: (answer: Answer, input: Input) => string | undefined;
  readonly onDone?: (answer: Answer, input: Input) => void;
  /** Returns what undoes the change; it is offered with the message of the success. Undefined: it cannot be undone. */
  readonly undo?: ((answer: Answer, input: Input) => (() => Promise<unknown>) | undefined) | undefined;
  /** The form shows the error itself. */
  readonly isQuiet?: boolean;
}

/** Returns a function that runs the change and rejects with its error, whether it runs, and the last error. */
export function useChange<Input, Answer>(
  run: (input: Input) => Promise<Answer>,
  { done, onDone, undo, isQuiet = false }: ChangeOptions<Input, Answer> = {},
) {
  const t = useTexts();
  const toast = useToast();
  const report = (error: unknown): void => {
    const { title, cause, requestId } = troubleOf(error, t);
    toast({ kind: "bad", text: title, detail: requestId === "" ? cause : `${cause} (${requestId})` });
  };
  const mutation = useMutation({
    mutationFn: run,
    onSuccess(answer, input) {
      const text = done?.(answer, input);
      const back = undo?.(answer, input);
      const offer = back && {
        text: t.common.undo,
        run: () => void back().then(() => toast({ kind: "good", text: t.common.undone }), report),
      };
      if (text !== undefined) toast({ kind: "good", text, action: offer });
      onDone?.(answer, input);
    },
    onError(error) {
      if (!isQuiet) report(error);
    },
  });
  return { run: mutation.mutateAsync, isBusy: mutation.isPending, error: mutation.error, reset: mutation.reset };
}
