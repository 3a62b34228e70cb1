/**
 * A button with a menu, which is above everything else, so that no table cuts it. Arrow keys move, Escape closes and returns the focus.
 */
import { type KeyboardEvent, type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { buttonClass } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

interface MenuProps {
  readonly label: string;
  readonly icon: IconName;
  /** Text of the button; absent: only the icon. */
  readonly text?: ReactNode;
  readonly size?: "small";
  readonly kind?: "quiet";
  readonly children: ReactNode;
}

/** Pixels between the menu and its button or the end of the screen. */
const gap = 4;

/** Places the menu below its button, or above it if there is more space. */
function place(menu: HTMLElement, button: HTMLElement): void {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const fits = at.bottom + gap + height <= innerHeight - gap || at.top < innerHeight - at.bottom;
  menu.style.left = `${Math.max(gap, Math.min(at.right - width, innerWidth - width - gap))}px`;
  menu.style.top = `${Math.max(gap, fits ? at.bottom + gap : at.top - gap - height)}px`;
}

export function Menu({ label, icon, text, size, kind, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const items = () => [...(menu.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  useLayoutEffect(() => {
    const [shown, button] = [menu.current, box.current?.querySelector("button")];
    if (!isOpen || shown === null || !button) return undefined;
    shown.showPopover();
    place(shown, button);
    // At once: an effect after the drawing may run when an item was chosen, and take the focus from the button that the dialog returns it to.
    items()[0]?.focus({ preventScroll: true });
    const at = button.getBoundingClientRect();
    const end = (): void => {
      const { left, top } = button.getBoundingClientRect();
      // The event of a scroll that ended before the menu opened may come after it.
      if (left !== at.left || top !== at.top) setOpen(false);
    };
    const leave = (event: PointerEvent): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("resize", end);
    document.addEventListener("scroll", end, true);
    document.addEventListener("pointerdown", leave);
    return () => {
      removeEventListener("resize", end);
      document.removeEventListener("scroll", end, true);
      document.removeEventListener("pointerdown", leave);
    };
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const end = { Home: 0, End: -1 }[event.key];
    if (event.key === "Escape" && isOpen) {
      event.stopPropagation();
      setOpen(false);
      box.current?.querySelector("button")?.focus();
    } else if (isOpen && step !== undefined) {
      event.preventDefault();
      all[(at + step + all.length) % all.length]?.focus();
    } else if (isOpen && end !== undefined) {
      event.preventDefault();
      all.at(end)?.focus();
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
        <div
          className="menu"
          ref={menu}
          popover="manual"
          role="menu"
          aria-label={label}
          onClickCapture={({ target }) => {
            // Before the item opens a dialog, which returns the focus to the button.
            if ((target as Element).closest("[aria-disabled=true]") === null)
              box.current?.querySelector("button")?.focus();
          }}
          onClick={() => setOpen(false)}
        >
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
