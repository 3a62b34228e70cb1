/** The screen of a computer by the RFB protocol (noVNC), scaled to its box. */
import RFB from "@novnc/novnc";
import { type RefObject, useEffect, useImperativeHandle, useRef } from "react";
import { createTyping, type Typing } from "./typing.ts";

export interface ScreenHandle {
  focus(): void;
  sendCtrlAltDel(): void;
  /** Types the text, so that it also arrives where the guest has no clipboard. */
  type(text: string): void;
}

interface ScreenProps {
  readonly handle: RefObject<ScreenHandle | null>;
  /** URL of the WebSocket, which is valid once. */
  readonly url: string;
  readonly label: string;
  readonly onOpen: () => void;
  readonly onClose: () => void;
}

export function ScreenBox({ handle, url, label, onOpen, onClose }: ScreenProps) {
  const box = useRef<HTMLDivElement>(null);
  const remote = useRef<RFB>(null);
  const typing = useRef<Typing>(null);
  const events = useRef({ onOpen, onClose });
  events.current = { onOpen, onClose };
  useImperativeHandle(
    handle,
    () => ({
      focus: () => remote.current?.focus(),
      sendCtrlAltDel: () => remote.current?.sendCtrlAltDel(),
      type: (text) => typing.current?.type(text),
    }),
    [],
  );
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const made = new RFB(element, url, { shared: true });
    made.scaleViewport = true;
    made.background = getComputedStyle(element).getPropertyValue("--terminal");
    made.addEventListener("connect", () => events.current.onOpen());
    made.addEventListener("disconnect", () => events.current.onClose());
    const canvas = element.querySelector("canvas");
    canvas?.setAttribute("role", "img");
    canvas?.setAttribute("aria-label", label);
    remote.current = made;
    const keyboard = createTyping(
      (...key) => made.sendKey(...key),
      (next, ms) => setTimeout(next, ms),
    );
    typing.current = keyboard;
    return () => {
      remote.current = null;
      typing.current = null;
      keyboard.stop();
      made.disconnect();
    };
  }, [url, label]);
  return <div className="terminal screen" ref={box} />;
}
