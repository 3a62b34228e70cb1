/** Collects events that arrive one by one, and passes them on together: once per frame of the screen. */
import type { Event } from "@brume/api/event.ts";

/** Milliseconds after which events are passed on without a frame: a page that is hidden, also after they arrived, draws none. */
const longest = 250;

/** Returns the function that takes an event. `onFrame`: calls a function with the next frame. */
export function createBatches(
  pass: (events: readonly Event[]) => void,
  onFrame: (draw: () => void) => void,
): (event: Event) => void {
  let waiting: Event[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    const events = waiting;
    waiting = [];
    if (events.length > 0) pass(events);
  };
  return (event) => {
    waiting.push(event);
    if (waiting.length > 1) return;
    timer = setTimeout(flush, longest);
    onFrame(flush);
  };
}
