/** Buttons, and buttons that copy a text. */
import { type ComponentProps, useEffect, useState } from "react";
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

/** A button that copies `text`. `label`: what is copied, for screen readers. */
export function Copy({ text, label }: { text: string; label: string }) {
  const t = useTexts();
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return undefined;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [isDone]);
  return (
    <button
      type="button"
      className="button quiet small square copy"
      title={t.common.copy}
      aria-label={`${t.common.copy}: ${label}`}
      onClick={() => void copyText(text).then(() => setDone(true))}
    >
      <Icon name={isDone ? "check" : "copy"} size={14} />
    </button>
  );
}

/** Copies a text, also where the page has no right to the clipboard because it was loaded without TLS. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  // The only way without TLS.
  // oxlint-disable-next-line typescript/no-deprecated
  document.execCommand("copy");
  area.remove();
}
