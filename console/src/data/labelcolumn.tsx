/** The column of labels, which is left out while no object has any: the other columns get its space. */
import type { Texts } from "../texts/en.ts";
import type { Column } from "../ui/columns.ts";
import { Tags } from "../ui/filters.tsx";
import { type Labels, labelTexts } from "./label.ts";

export const hasLabels = (objects: readonly { readonly Labels: Labels }[] | undefined): boolean =>
  objects?.some(({ Labels }) => Object.keys(Labels).length > 0) ?? false;

export const labelColumn = <T extends { readonly Labels: Labels }>(isShown: boolean, t: Texts): Column<T>[] =>
  isShown
    ? [
        {
          id: "labels",
          name: t.common.labels,
          width: "minmax(120px, 1fr)",
          cell: ({ Labels }) => <Tags texts={labelTexts(Labels)} />,
        },
      ]
    : [];
