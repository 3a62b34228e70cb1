/** The filter above a list of domain names: by name in both spellings, and by label. Its values are in the address of the page. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type Labels, labelTexts } from "../../data/label.ts";
import type { Filter } from "../../data/objectlist.tsx";
import { useTexts } from "../../texts/texts.tsx";

interface Named {
  readonly Name: string;
  readonly NamePunyCode: string;
  readonly Labels: Labels;
}

const textsOf = ({ Name, NamePunyCode, Labels: labels }: Named): string[] => [
  Name,
  NamePunyCode,
  ...labelTexts(labels),
];

/** Returns the filter. `noMatch`: shown if no name matches. */
export function useNameFilter(noMatch: string): Filter<Named> {
  const t = useTexts();
  const go = useNavigate({ from: "/dns" });
  const { q = "", label = "" } = useSearch({ from: "/dns" });
  return {
    name: t.domains.filter,
    q,
    label,
    textsOf,
    onChange: (part) => void go({ search: (before) => ({ ...before, ...part }), replace: true }),
    noMatch,
  };
}
