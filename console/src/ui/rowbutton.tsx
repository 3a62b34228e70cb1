/** A column with one button in each row, such as the one that deletes it. */
import { Button } from "./button.tsx";
import type { Column } from "./columns.ts";
import type { IconName } from "./icon.tsx";

interface RowButton<T> {
  /** Name of the column, for screen readers. */
  readonly name: string;
  readonly icon: IconName;
  /** What the button does with the row. */
  readonly labelOf: (row: T) => string;
  /** Whether the row has no button. */
  readonly isAbsent?: (row: T) => boolean;
  readonly onPress: (row: T) => void;
}

export function rowButton<T>({ name, icon, labelOf, isAbsent, onPress }: RowButton<T>): Column<T> {
  return {
    id: `button-${icon}`,
    name,
    isNameHidden: true,
    width: "32px",
    isMain: true,
    isLoose: true,
    cell: (row) =>
      isAbsent?.(row) === true ? null : (
        <Button kind="quiet" size="small" icon={icon} aria-label={labelOf(row)} onClick={() => onPress(row)} />
      ),
  };
}
