/** Short messages about what runs or has ended. A screen reader announces each once. */
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { withToast } from "./toastlist.ts";

export interface Toast {
  /** `busy`: about what runs. It stays until another one takes its place. */
  readonly kind: "good" | "bad" | "busy";
  readonly text: string;
  readonly detail?: string | undefined;
  /** What the message is about: it takes the place of the one with the same key. */
  readonly key?: string;
  /** The button that undoes the change. */
  readonly undo?: Undo | undefined;
}

interface Undo {
  readonly text: string;
  readonly run: () => void;
  /** End of the address of the page whose change it undoes. */
  readonly page: string;
  /** Kind and id of the object that it changes: `server:3`. */
  readonly of: string;
}

interface Messages {
  readonly show: (toast: Toast) => void;
  /** Removes the messages that a function selects. */
  readonly drop: (isOver: (toast: Toast) => boolean) => void;
}

const ToastContext = createContext<Messages>({ show() {}, drop() {} });

/** Returns the function that shows a message. */
export const useToast = (): Messages["show"] => useContext(ToastContext).show;

/** Returns the function that removes messages. */
export const useDropToasts = (): Messages["drop"] => useContext(ToastContext).drop;

const icons = { good: "check", bad: "error", busy: "busy" } as const;

/** Milliseconds that a message of a success is shown. Errors stay until they are closed. */
const shown = 5000;
/** The same of one with a button. */
const shownWithUndo = 15_000;

export function Toasts({ children }: { children: ReactNode }) {
  const t = useTexts();
  const [toasts, setToasts] = useState<readonly (Toast & { readonly id: number })[]>([]);
  const count = useRef(0);
  const close = useCallback((id: number) => setToasts((all) => all.filter((one) => one.id !== id)), []);
  const show = useCallback<Messages["show"]>(
    (toast) => {
      const id = ++count.current;
      setToasts((all) => withToast(all, { ...toast, id }));
      if (toast.kind === "good") setTimeout(() => close(id), toast.undo ? shownWithUndo : shown);
    },
    [close],
  );
  const drop = useCallback<Messages["drop"]>((isOver) => {
    setToasts((all) => (all.some(isOver) ? all.filter((one) => !isOver(one)) : all));
  }, []);
  const value = useMemo(() => ({ show, drop }), [show, drop]);
  return (
    <ToastContext value={value}>
      {children}
      <div className="toasts" role="status" aria-live="polite" aria-relevant="additions">
        {toasts.map(({ id, kind, text, detail, undo }) => (
          <div key={id} className={`toast ${kind}`}>
            <Icon name={icons[kind]} spins={kind === "busy"} />
            <div className="grow break">
              <strong>{text}</strong>
              {detail !== undefined && <div className="muted small">{detail}</div>}
            </div>
            {undo && (
              <Button
                size="small"
                icon="undo"
                onClick={() => {
                  close(id);
                  undo.run();
                }}
              >
                {undo.text}
              </Button>
            )}
            <Button kind="quiet" size="small" icon="close" aria-label={t.common.close} onClick={() => close(id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
