/** Which messages are shown together. Pure. */

interface Listed {
  readonly key?: string | undefined;
  readonly undo?: { readonly of: string } | undefined;
}

const most = 4;

/**
 * Returns the messages with one more. It takes the place of the one with its key. Of the changes of an object only the last one can be undone, so
 * the offers to undo those before it end.
 */
export function withToast<T extends Listed>(all: readonly T[], toast: T): readonly T[] {
  const of = toast.undo?.of ?? "";
  const rest = of === "" ? all : all.filter(({ undo }) => undo?.of !== of);
  const place = toast.key === undefined ? -1 : rest.findIndex(({ key }) => key === toast.key);
  return place < 0 ? [...rest, toast].slice(-most) : rest.with(place, toast);
}
