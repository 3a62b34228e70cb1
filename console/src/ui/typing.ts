/**
 * Types texts as keys of a VM with the keyboard of the United States. QEMU presses only the key of a character, so without Shift "A" arrives as "a".
 * It needs 20 ms for a key, queues about 85 keys with Shift, and drops the others, also the release of Shift.
 */
export type SendKey = (keysym: number, code: string | null, down?: boolean) => void;

export interface Typing {
  type(text: string): void;
  /** Forgets what is not typed yet. */
  stop(): void;
}

/** Keys of X11. */
const returnKey = 0xff0d;
const tabKey = 0xff09;
const shiftKey = 0xffe1;

const withShift = /[A-Z~!@#$%^&*()_+{}|:"<>?]/;
const charactersAtOnce = 40;
const msPerKey = 25;

/** Returns the X11 key of a character. */
const keyOf = (character: string): number => {
  if (character === "\n") return returnKey;
  if (character === "\t") return tabKey;
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? code : 0x1000000 + code;
};

/** `later` calls a function after some milliseconds. */
export function createTyping(sendKey: SendKey, later: (next: () => void, ms: number) => void): Typing {
  let waiting: string[] = [];
  let isBusy = false;
  const press = (): void => {
    let keys = 0;
    for (const character of waiting.splice(0, charactersAtOnce)) {
      const isShifted = withShift.test(character);
      if (isShifted) sendKey(shiftKey, "ShiftLeft", true);
      sendKey(keyOf(character), null);
      if (isShifted) sendKey(shiftKey, "ShiftLeft", false);
      keys += isShifted ? 2 : 1;
    }
    isBusy = keys > 0;
    if (isBusy) later(press, keys * msPerKey);
  };
  return {
    type(text) {
      waiting.push(...Array.from(text.replaceAll("\r", "")));
      if (!isBusy) press();
    },
    stop() {
      waiting = [];
    },
  };
}
