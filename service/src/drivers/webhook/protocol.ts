/** Messages between the service and the thread that sends webhooks. Several sends or answers travel in one message. */
import type { Answer, Message } from "./interface.ts";

/** To the thread. `cancel`: ends the send of this id early. */
export type Command = { readonly id: number; readonly message: Message } | { readonly cancel: number };

/** From the thread. */
export interface Done {
  readonly id: number;
  readonly answer: Answer;
}

/** Returns a function that collects values and passes them on together, once per turn of the event loop. */
export function collect<Value>(pass: (values: readonly Value[]) => void): (value: Value) => void {
  let waiting: Value[] = [];
  const flush = (): void => {
    const values = waiting;
    waiting = [];
    pass(values);
  };
  return (value) => {
    if (waiting.push(value) === 1) setImmediate(flush);
  };
}
