/** Checks a request by the service while it is typed: a dry run 300 ms after the last change. One that could not be made is repeated. */
import { ApiError, ConnectionError } from "@brume/api/client.ts";
import { isPassing } from "@brume/api/transport.ts";
import { useEffect, useState } from "react";

const pause = 300;
/** Milliseconds after which a check that could not be made is repeated; doubled after each. */
const firstRepeat = 1000;
const longestRepeat = 15_000;

/** Returns whether the check may succeed later without a change of the request. */
const mayPass = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof ApiError && isPassing(error));

interface Checked {
  readonly text: string;
  readonly error: unknown;
}

/** `input` null: nothing to check. Returns the error of the current input; null: it is valid, or not checked yet. */
export function useDryRun<Input>(
  input: Input | null,
  run: (input: Input, signal: AbortSignal) => Promise<unknown>,
): { readonly error: unknown; readonly isChecking: boolean } {
  const [checked, setChecked] = useState<Checked | null>(null);
  const text = input === null ? "" : JSON.stringify(input);
  useEffect(() => {
    if (text === "") return undefined;
    const left = new AbortController();
    const check = (repeat: number): void => {
      run(JSON.parse(text) as Input, left.signal).then(
        () => setChecked({ text, error: null }),
        (error: unknown) => {
          if (left.signal.aborted) return;
          setChecked({ text, error });
          if (mayPass(error)) timer = setTimeout(check, repeat, Math.min(longestRepeat, 2 * repeat));
        },
      );
    };
    let timer = setTimeout(check, pause, firstRepeat);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [text]);
  if (text === "" || checked === null) return { error: null, isChecking: text !== "" };
  // The last result stays until the next one, so that errors do not flicker.
  return { error: checked.error, isChecking: checked.text !== text };
}

/**
 * Returns the function that runs `act` once the check has ended without an error, and whether that is waited for. An error ends the wait:
 * the page shows it.
 */
export function useAfterCheck(
  { error, isChecking }: ReturnType<typeof useDryRun>,
  act: () => void,
): { readonly isWaiting: boolean; readonly start: () => void } {
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    if (!isWaiting || isChecking) return;
    setWaiting(false);
    if (error === null) act();
  }, [isWaiting, isChecking, error, act]);
  return { isWaiting, start: () => setWaiting(true) };
}

/** Returns the text as it was when it last stayed unchanged for 300 ms. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), pause);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
