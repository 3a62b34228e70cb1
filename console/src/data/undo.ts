/** Undoes a change of fields, only if they still are as the change has set them. */
import type { ChangeOptions } from "@brume/api/client.ts";
import { useTexts } from "../texts/texts.tsx";
import { Conflict } from "./errortext.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Undo<Answer> {
  /** Reads the object as it is now. */
  readonly read: () => Promise<{ readonly answer: Answer; readonly etag: string | null }>;
  /** Returns whether it is as the change has left it. */
  readonly isSame: (answer: Answer) => boolean;
  /** Writes the fields as they were before. The options make sure that nothing has changed since the read. */
  readonly write: (options: ChangeOptions) => Promise<unknown>;
}

/** Returns the text of a value, whose names are in order. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

export const isEqual = (one: unknown, other: unknown): boolean => textOf(one) === textOf(other);

/** Returns whether an object has these values. */
export const hasFields = (object: object, fields: Fields): boolean =>
  Object.entries(fields).every(([name, value]) => isEqual((object as Fields)[name], value));

/** Returns the values that an object has in these fields. */
export const pickFields = <T extends object>(object: T, fields: Fields): Partial<T> =>
  Object.fromEntries(Object.entries(object).filter(([name]) => name in fields)) as Partial<T>;

/** Returns the function that makes what undoes a change. */
export function useUndo() {
  const t = useTexts();
  return <Answer>({ read, isSame, write }: Undo<Answer>) =>
    async (): Promise<void> => {
      const { answer, etag } = await read();
      if (!isSame(answer)) throw new Conflict(t.errors.changedSince);
      await write(etag === null ? {} : { ifMatch: etag });
    };
}
