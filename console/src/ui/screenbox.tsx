/** The screen of a computer by the RFB protocol (noVNC), scaled to its box. */
import RFB from "@novnc/novnc";
import { type RefObject, useEffect, useImperativeHandle, useRef } from "react";

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

const returnKey = 0xff0d;
const tabKey = 0xff09;

/** Returns the X11 key of a character. */
const keyOf = (character: string): number => {
  if (character === "\n") return returnKey;
  if (character === "\t") return tabKey;
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? code : 0x1000000 + code;
};

export function ScreenBox({ handle, url, label, onOpen, onClose }: ScreenProps) {
  const box = useRef<HTMLDivElement>(null);
  const remote = useRef<RFB>(null);
  const events = useRef({ onOpen, onClose });
  events.current = { onOpen, onClose };
  useImperativeHandle(
    handle,
    () => ({
      focus: () => remote.current?.focus(),
      sendCtrlAltDel: () => remote.current?.sendCtrlAltDel(),
      type(text) {
        for (const character of text.replaceAll("\r", "")) remote.current?.sendKey(keyOf(character), null);
      },
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
    return () => {
      remote.current = null;
      made.disconnect();
    };
  }, [url, label]);
  return <div className="terminal screen" ref={box} />;
}
