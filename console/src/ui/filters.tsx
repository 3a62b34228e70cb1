/** The inputs above a list that select what it shows. */
import type { ReactNode } from "react";

interface SearchFilterProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
}

export function SearchFilter({ label, placeholder = label, value, onChange }: SearchFilterProps) {
  return (
    <input
      className="input"
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onChange={({ target }) => onChange(target.value)}
    />
  );
}

interface SelectFilterProps {
  readonly label: string;
  /** Text of the choice that shows all. */
  readonly any: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

export function SelectFilter({ label, any, value, options, onChange }: SelectFilterProps) {
  return (
    <select className="input" aria-label={label} value={value} onChange={({ target }) => onChange(target.value)}>
      <option value="">{any}</option>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Short texts side by side, such as labels. */
export function Tags({ texts }: { texts: readonly string[] }): ReactNode {
  return (
    <span title={texts.join(", ")}>
      {texts.map((text) => (
        <span key={text} className="tag">
          {text}
        </span>
      ))}
    </span>
  );
}
