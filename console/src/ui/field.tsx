/** Fields of forms: label, hint and error belong to their input. */
import { type ComponentProps, type ReactNode, useEffect, useId } from "react";
import type { Texts } from "../texts/en.ts";
import { useTexts } from "../texts/texts.tsx";
import { Icon } from "./icon.tsx";

/** A unit that a field can have, by its name in the texts. */
type Unit = keyof Texts["common"]["units"];

interface Around {
  readonly label: string;
  readonly hint?: ReactNode;
  /** Error of the field; shown instead of the hint. */
  readonly error?: string | undefined;
}

interface Ids {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean | undefined;
}

/** Gives the focus to an element that appears. Browsers obey `autofocus` only once for each page load. */
const takeFocus = (element: HTMLElement | null): void => element?.focus();

const focusOf = (autoFocus: boolean | undefined) => (autoFocus === true ? { ref: takeFocus } : {});

/** Keeps the field with the focus in view when the bar at the end of the screen appears or grows. `bar`: what it shows; empty: there is none. */
export function useFieldInView(bar: string): void {
  useEffect(() => {
    if (bar !== "") document.activeElement?.scrollIntoView({ block: "nearest" });
  }, [bar]);
}

/** Writes what a field keeps of its text into it, and returns it: a field whose value stays the same is not rendered again. */
export function rewrite(field: HTMLInputElement, kept: string): string {
  if (field.value !== kept) field.value = kept;
  return kept;
}

/** Moves the focus to the first invalid field of a form, which may be out of view, when its error is drawn. */
export function focusInvalid(form: HTMLFormElement): void {
  requestAnimationFrame(() => form.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
}

/** A label with an input, which gets the attributes that connect them. */
export function Field({ label, hint, error, children }: Around & { children: (ids: Ids) => ReactNode }) {
  const id = useId();
  const isDescribed = hint !== undefined || error !== undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        "aria-describedby": isDescribed ? `${id}-about` : undefined,
        "aria-invalid": error === undefined ? undefined : true,
      })}
      {isDescribed && (
        <div id={`${id}-about`} className={error === undefined ? "hint" : "field-error"}>
          {error !== undefined && <Icon name="error" size={14} />}
          <span>{error ?? hint}</span>
        </div>
      )}
    </div>
  );
}

/** A text field. `unit`: shown at its end. */
export function TextField({
  label,
  hint,
  error,
  unit,
  autoFocus,
  ...rest
}: Around & { unit?: Unit | "" | undefined } & ComponentProps<"input">) {
  const { units } = useTexts().common;
  return (
    <Field label={label} hint={hint} error={error}>
      {({ "aria-describedby": about, ...ids }) => {
        const hasUnit = unit !== undefined && unit !== "";
        const described = [hasUnit && `${ids.id}-unit`, about].filter(Boolean).join(" ");
        return (
          <div className="unit">
            <input
              className="input"
              autoComplete="off"
              aria-describedby={described || undefined}
              {...ids}
              {...rest}
              {...focusOf(autoFocus)}
            />
            {hasUnit && <span id={`${ids.id}-unit`}>{units[unit]}</span>}
          </div>
        );
      }}
    </Field>
  );
}

interface NumberFieldProps extends Around, Omit<ComponentProps<"input">, "value" | "type" | "onChange"> {
  readonly unit?: Unit | "" | undefined;
  readonly value: number | undefined;
  readonly onChange: (value: number | undefined) => void;
}

/**
 * A field of a number; undefined: it is empty. Its value is a text, because Preact writes a number into the field at each rendering, also
 * over the beginning of another number, such as "1." or "-".
 */
export function NumberField({ value, onChange, ...rest }: NumberFieldProps) {
  return (
    <TextField
      {...rest}
      type="number"
      value={value === undefined ? "" : String(value)}
      onChange={({ target }) => onChange(target.value === "" ? undefined : target.valueAsNumber)}
    />
  );
}

/** A field of several lines. */
export function AreaField({ label, hint, error, autoFocus, ...rest }: Around & ComponentProps<"textarea">) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => <textarea className="input" rows={5} spellCheck={false} {...ids} {...rest} {...focusOf(autoFocus)} />}
    </Field>
  );
}

/** A choice of one of few values. */
export function SelectField({
  label,
  hint,
  error,
  options,
  autoFocus,
  ...rest
}: Around & { options: readonly (readonly [value: string, text: string])[] } & ComponentProps<"select">) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <select className="input" {...ids} {...rest} {...focusOf(autoFocus)}>
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A check box with its text. */
export function Check({ label, hint, ...rest }: { label: ReactNode; hint?: ReactNode } & ComponentProps<"input">) {
  return (
    <label className="check">
      <input type="checkbox" {...rest} />
      <span>
        {label}
        {hint !== undefined && <span className="hint"> {hint}</span>}
      </span>
    </label>
  );
}

/** One of several options with a description, as radio button. */
export function Choice({ title, about, ...rest }: { title: ReactNode; about?: ReactNode } & ComponentProps<"input">) {
  return (
    <label className="choice">
      <input type="radio" {...rest} />
      <strong>{title}</strong>
      {about !== undefined && <span className="muted small">{about}</span>}
    </label>
  );
}
