/** Dialogs on the native element, which holds the focus and closes on Escape. */
import {
  createContext,
  type MouseEvent,
  type ReactNode,
  type SubmitEvent,
  useContext,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { createPortal } from "react-dom";
import { visible } from "../texts/isolate.ts";
import { useTexts } from "../texts/texts.tsx";
import { Button } from "./button.tsx";
import { TextField } from "./field.tsx";

/** The places for notices in the open dialogs, the uppermost last, and the function that changes them. */
const NoticeSlots = createContext<
  readonly [readonly HTMLElement[], (change: (slots: readonly HTMLElement[]) => readonly HTMLElement[]) => void]
>([[], () => {}]);

export function NoticeSlotsProvider({ children }: { children: ReactNode }) {
  return <NoticeSlots value={useState<readonly HTMLElement[]>([])}>{children}</NoticeSlots>;
}

/** Shows what must not wait in the uppermost dialog: while one is open, the page is inert. Without a dialog it stays where it is. */
export function Notices({ children }: { children: ReactNode }) {
  const slot = useContext(NoticeSlots)[0].at(-1);
  return slot === undefined ? children : createPortal(children, slot);
}

interface DialogProps {
  readonly label: string;
  readonly onClose: () => void;
  readonly kind?: "wide" | "drawer" | "palette" | undefined;
  readonly children: ReactNode;
}

/** Returns whether the pointer is on the backdrop. Border, scroll bar and empty space of a dialog have the same target. */
function isOutside({ clientX, clientY }: MouseEvent, dialog: HTMLDialogElement): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX >= right || clientY < top || clientY >= bottom;
}

/** A dialog that is open as long as it is rendered. */
export function Dialog({ label, onClose, kind, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const noticesRef = useRef<HTMLDivElement>(null);
  const [, setSlots] = useContext(NoticeSlots);
  useLayoutEffect(() => {
    const slot = noticesRef.current;
    if (slot === null) return undefined;
    setSlots((slots) => [...slots, slot]);
    return () => setSlots((slots) => slots.filter((each) => each !== slot));
  }, [setSlots]);
  // The element must still be in the page when it closes: only then the focus returns to where it was.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    // Otherwise the button that closes it has the focus.
    dialog?.querySelector<HTMLElement>("form :is(input:not([type=checkbox], [type=radio]), textarea, select)")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      className={kind}
      aria-label={label}
      onCancel={(event) => {
        // A field for a file sends this event too, when the user selects no file.
        if (event.target !== ref.current) return;
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current && isOutside(event, ref.current)) onClose();
      }}
    >
      <div className="notices" ref={noticesRef} />
      {children}
    </dialog>
  );
}

/** Title of a dialog and the button that closes it. */
export function DialogHead({ title, onClose }: { title: string; onClose: () => void }) {
  const t = useTexts();
  return (
    <div className="dialog-head">
      <h2>{title}</h2>
      <Button kind="quiet" size="small" icon="close" aria-label={t.common.close} onClick={onClose} />
    </div>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  /** Text that must be typed before; absent: none. */
  readonly typed?: string | undefined;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}

/** A dialog before something that cannot be undone. It closes when the work has been accepted. */
export function Confirm({ title, children, action, typed, onConfirm, onClose }: ConfirmProps) {
  const t = useTexts();
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isTyped = typed === undefined || visible(text) === visible(typed);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setBusy(true);
    onConfirm().then(onClose, () => setBusy(false));
  };
  return (
    <Dialog label={title} onClose={onClose}>
      <form onSubmit={submit}>
        <DialogHead title={title} onClose={onClose} />
        <div className="stack">{children}</div>
        {typed !== undefined && (
          <TextField
            label={t.common.typeToConfirm(typed)}
            value={text}
            autoFocus
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
          />
        )}
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button type="submit" kind="danger primary" isBusy={isBusy} disabled={!isTyped}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
