/** Short messages about what has ended. A screen reader announces each once. */
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

export interface Toast {
  readonly kind: "good" | "bad";
  readonly text: string;
  readonly detail?: string | undefined;
  /** A button, such as the one that undoes the change. */
  readonly action?: { readonly text: string; readonly run: () => void } | undefined;
}

type Show = (toast: Toast) => void;

const ToastContext = createContext<Show>(() => {});

/** Returns the function that shows a message. */
export const useToast = (): Show => useContext(ToastContext);

const most = 4;
/** Milliseconds that a message of a success is shown. Errors stay until they are closed. */
const shown = 5000;
/** The same of one with a button. */
const shownWithAction = 15_000;

export function Toasts({ children }: { children: ReactNode }) {
  const t = useTexts();
  const [toasts, setToasts] = useState<readonly (Toast & { readonly id: number })[]>([]);
  const count = useRef(0);
  const drop = useCallback((id: number) => setToasts((all) => all.filter((one) => one.id !== id)), []);
  const show = useCallback<Show>(
    (toast) => {
      const id = ++count.current;
      setToasts((all) => [...all, { ...toast, id }].slice(-most));
      if (toast.kind === "good") setTimeout(() => drop(id), toast.action ? shownWithAction : shown);
    },
    [drop],
  );
  const value = useMemo(() => show, [show]);
  return (
    <ToastContext value={value}>
      {children}
      <div className="toasts" role="status" aria-live="polite" aria-relevant="additions">
        {toasts.map(({ id, kind, text, detail, action }) => (
          <div key={id} className={`toast ${kind}`}>
            <Icon name={kind === "good" ? "check" : "error"} />
            <div className="grow break">
              <strong>{text}</strong>
              {detail !== undefined && <div className="muted small">{detail}</div>}
            </div>
            {action && (
              <Button
                size="small"
                icon="undo"
                onClick={() => {
                  drop(id);
                  action.run();
                }}
              >
                {action.text}
              </Button>
            )}
            <Button kind="quiet" size="small" icon="close" aria-label={t.common.close} onClick={() => drop(id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
