/** A terminal (xterm.js). Its style sheets are constructed, because the policy of the page forbids style elements. */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { type RefObject, useEffect, useImperativeHandle, useRef } from "react";

export interface TerminalHandle {
  write(bytes: Uint8Array): void;
  /** Shows only this text. */
  restart(text: string): void;
  focus(): void;
}

interface TerminalProps {
  readonly handle: RefObject<TerminalHandle | null>;
  readonly label: string;
  readonly onInput: (text: string) => void;
}

/** Stands for a style element: its text is in a constructed style sheet, which the policy allows. */
class ConstructedStyle extends HTMLElement {
  readonly sheet = new CSSStyleSheet();
  override set textContent(text: string) {
    this.sheet.replaceSync(text);
  }
  connectedCallback(): void {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.sheet];
  }
  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.sheet);
  }
}
customElements.define("constructed-style", ConstructedStyle);

export function TerminalBox({ handle, label, onInput }: TerminalProps) {
  const box = useRef<HTMLDivElement>(null);
  const terminal = useRef<Terminal>(null);
  const input = useRef(onInput);
  input.current = onInput;
  useImperativeHandle(
    handle,
    () => ({
      write: (bytes) => terminal.current?.write(bytes),
      restart(text) {
        terminal.current?.reset();
        terminal.current?.write(text.replaceAll("\n", "\r\n"));
      },
      focus: () => terminal.current?.focus(),
    }),
    [],
  );
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const style = getComputedStyle(element);
    const made = new Terminal({
      fontFamily: style.getPropertyValue("--mono"),
      fontSize: 13,
      scrollback: 5000,
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      screenReaderMode: true,
      theme: {
        background: style.getPropertyValue("--terminal"),
        foreground: style.getPropertyValue("--terminal-text"),
      },
    });
    const fit = new FitAddon();
    made.loadAddon(fit);
    made.open(element);
    made.textarea?.setAttribute("aria-label", label);
    // Tab belongs to the guest, so another key leaves the terminal.
    made.attachCustomKeyEventHandler((event) => {
      if (!(event.key === "Escape" && event.ctrlKey && event.shiftKey)) return true;
      made.blur();
      return false;
    });
    made.onData((text) => input.current(text));
    // With its screen reader mode, xterm ignores text without key events: of an emoji panel, of dictation.
    let hasKey = false;
    // Its own element, which goes with it.
    made.element?.addEventListener("keydown", () => (hasKey = true), true);
    made.element?.addEventListener("keyup", () => (hasKey = false), true);
    made.element?.addEventListener("input", ({ inputType, data, isComposing }) => {
      if (inputType === "insertText" && data !== null && !isComposing && !hasKey) made.input(data);
    });
    fit.fit();
    const resize = new ResizeObserver(() => fit.fit());
    resize.observe(element);
    // Characters may get their width when the font is loaded.
    void document.fonts.ready.then(() => fit.fit());
    terminal.current = made;
    return () => {
      resize.disconnect();
      made.dispose();
      terminal.current = null;
    };
  }, [label]);
  return <div className="terminal" ref={box} />;
}
