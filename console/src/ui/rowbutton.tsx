/** A column with one button in each row, such as the one that deletes it: an icon, or its name where an icon is not plain. */
import { Button } from "./button.tsx";
import type { Column } from "./columns.ts";
import type { IconName } from "./icon.tsx";

interface RowButton<T> {
  /** Name of the column, for screen readers. */
  readonly name: string;
  readonly icon: IconName;
  /** Width of a button that shows the name too; absent: it shows only the icon. */
  readonly width?: string;
  /** What the button does with the row. */
  readonly labelOf: (row: T) => string;
  /** Whether the row has no button. */
  readonly isAbsent?: (row: T) => boolean;
  readonly onPress: (row: T) => void;
}

export function rowButton<T>({ name, icon, width, labelOf, isAbsent, onPress }: RowButton<T>): Column<T> {
  return {
    id: `button-${icon}`,
    name,
    isNameHidden: true,
    width: width ?? "32px",
    isRight: width !== undefined,
    isMain: true,
    isLoose: true,
    cell(row) {
      if (isAbsent?.(row) === true) return null;
      const button = { size: "small", icon, "aria-label": labelOf(row), onClick: () => onPress(row) } as const;
      return width === undefined ? <Button kind="quiet" {...button} /> : <Button {...button}>{name}</Button>;
    },
  };
}
