/** A button with a menu. Arrow keys move, Escape closes and returns the focus. */
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { buttonClass } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

interface MenuProps {
  readonly label: string;
  readonly icon: IconName;
  /** Text of the button; absent: only the icon. */
  readonly text?: ReactNode;
  readonly isStart?: boolean;
  readonly size?: "small";
  readonly kind?: "quiet";
  readonly children: ReactNode;
}

export function Menu({ label, icon, text, isStart = false, size, kind, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const items = () => [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  useEffect(() => {
    if (!isOpen) return undefined;
    items()[0]?.focus();
    const leave = (event: PointerEvent): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && isOpen) {
      event.stopPropagation();
      setOpen(false);
      box.current?.querySelector("button")?.focus();
    } else if (isOpen && step !== undefined) {
      event.preventDefault();
      all[(at + step + all.length) % all.length]?.focus();
    } else if (event.key === "Tab") setOpen(false);
  };
  return (
    <div className="menu-box" ref={box} onKeyDown={onKeyDown}>
      <button
        type="button"
        className={buttonClass(kind, `${size ?? ""} ${text === undefined ? "square" : ""}`)}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={label}
        title={text === undefined ? label : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={icon} />
        {text}
      </button>
      {isOpen && (
        <div className={isStart ? "menu start" : "menu"} role="menu" aria-label={label} onClick={() => setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}

interface MenuItemProps {
  readonly icon?: IconName;
  readonly isDanger?: boolean;
  /** Why the item cannot be used; absent: it can. */
  readonly why?: string | undefined;
  readonly onSelect: () => void;
  readonly children: ReactNode;
}

export function MenuItem({ icon, isDanger = false, why, onSelect, children }: MenuItemProps) {
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      className={isDanger ? "danger" : undefined}
      aria-disabled={why !== undefined}
      onClick={(event) => {
        if (why === undefined) onSelect();
        else event.stopPropagation();
      }}
    >
      {icon && <Icon name={icon} />}
      <span>
        {children}
        {why !== undefined && <span className="why">{why}</span>}
      </span>
    </button>
  );
}
