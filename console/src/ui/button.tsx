/** Buttons, also those that copy a text or select a file. */
import { type ComponentProps, useEffect, useRef, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Icon, type IconName } from "./icon.tsx";

interface Look {
  readonly kind?: "primary" | "danger" | "danger primary" | "quiet" | undefined;
  readonly icon?: IconName | undefined;
  readonly size?: "small" | undefined;
}

/** Class names of a button, also for links that look like one. */
export const buttonClass = (kind = "", more = ""): string => `button ${kind} ${more}`.replaceAll(/ +/g, " ").trim();

type ButtonProps = ComponentProps<"button"> & Look & { readonly isBusy?: boolean };

/** A button. `isBusy`: its work runs, so it cannot be pressed again. */
export function Button({ kind, icon, size, isBusy = false, children, className, disabled, ...rest }: ButtonProps) {
  const square = children === undefined ? "square" : "";
  const shown = isBusy ? "busy" : icon;
  return (
    <button
      type="button"
      className={`${buttonClass(kind, `${square} ${size ?? ""}`)} ${className ?? ""}`}
      disabled={disabled === true || isBusy}
      {...rest}
    >
      {shown && <Icon name={shown} spins={isBusy} />}
      {children}
    </button>
  );
}

/** A button that opens the dialog of the system to select a file. */
export function FileButton({ label, onFile }: { readonly label: string; readonly onFile: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button size="small" icon="file" onClick={() => input.current?.click()}>
        {label}
      </Button>
      <input
        ref={input}
        aria-label={label}
        type="file"
        hidden
        onChange={({ target }) => {
          const file = target.files?.[0];
          if (file !== undefined) onFile(file);
          // The same file can be selected again.
          target.value = "";
        }}
      />
    </>
  );
}

/** A button that copies `text`. `label`: what is copied, for screen readers. */
export function Copy({ text, label }: { text: string; label: string }) {
  const t = useTexts();
  const [ended, setEnded] = useState<"check" | "error" | null>(null);
  useEffect(() => {
    if (ended === null) return undefined;
    const timer = setTimeout(() => setEnded(null), 1500);
    return () => clearTimeout(timer);
  }, [ended]);
  const name = ended === null ? t.common.copy : ended === "check" ? t.common.copied : t.common.notCopied;
  return (
    <button
      type="button"
      className="button quiet small square copy"
      title={name}
      aria-label={`${name}: ${label}`}
      onClick={({ currentTarget }) =>
        void copyText(text, currentTarget).then(
          () => setEnded("check"),
          () => setEnded("error"),
        )
      }
    >
      <Icon name={ended ?? "copy"} size={14} />
    </button>
  );
}

/**
 * Copies a text, also where the page has no right to the clipboard because it was loaded without TLS. Rejects if nothing was copied. `button`: has
 * the focus again afterwards.
 */
async function copyText(text: string, button: HTMLElement): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  // Nothing outside of an open dialog can be selected.
  (button.closest("dialog") ?? document.body).append(area);
  area.select();
  // The only way without TLS.
  // oxlint-disable-next-line typescript/no-deprecated
  const isCopied = document.execCommand("copy");
  area.remove();
  button.focus();
  if (!isCopied) throw new Error("nothing was copied");
}
