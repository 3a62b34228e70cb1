/** Inputs for the fields of an operation that a form does not place itself: a new field of the contract appears here. */
import type { OperationName } from "@brume/api/contract.ts";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Skeleton } from "../ui/feedback.tsx";
import { NumberField, SelectField, TextField } from "../ui/field.tsx";
import { useData } from "./data.tsx";
import { type Labels, labelText, readLabels } from "./label.ts";
import { queriesOf } from "./queries.ts";
import { isEqual } from "./undo.ts";

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly "x-ignored"?: boolean;
  readonly "x-labels"?: boolean;
}

interface SchemaFieldsProps {
  readonly operation: OperationName;
  /** Field whose elements have the fields; absent: the body itself. */
  readonly list?: string;
  /** Fields that have an input elsewhere. */
  readonly placed: ReadonlySet<string>;
  readonly value: Readonly<Record<string, unknown>>;
  /** Returns the error at a pointer. */
  readonly error: (pointer: string) => string | undefined;
  readonly onChange: (part: Readonly<Record<string, unknown>>) => void;
}

/** Texts of the contract contain code in backticks. */
const plain = (text = ""): string => text.replaceAll("`", "");

function SchemaFields({ operation, list, placed, value, error, onChange }: SchemaFieldsProps) {
  const [fields, setFields] = useState<Readonly<Record<string, Schema>>>();
  useEffect(() => {
    void import("./equivalent.ts").then(({ bodyFields }) =>
      setFields(bodyFields(operation, list) as Readonly<Record<string, Schema>>),
    );
  }, [operation, list]);
  if (fields === undefined) return <Skeleton lines={4} />;
  return (
    <div className="stack">
      {Object.entries(fields)
        .filter(([name, schema]) => !placed.has(name) && schema["x-ignored"] !== true)
        .map(([name, schema]) => (
          <SchemaField
            key={name}
            name={name}
            schema={schema}
            value={value[name]}
            error={error(`/${name}`)}
            onChange={(next) => onChange({ [name]: next })}
          />
        ))}
    </div>
  );
}

/** The fields of the contract that a form does not place, folded. */
export function OtherFields(props: SchemaFieldsProps) {
  const t = useTexts();
  const [isOpen, setOpen] = useState<boolean>();
  return (
    <details className="panel" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{t.create.advanced}</summary>
      <div className="body">
        {/* The form shows the errors of fields that are folded. */}
        {isOpen !== undefined && <SchemaFields {...props} error={isOpen ? props.error : () => undefined} />}
      </div>
    </details>
  );
}

/** Returns the values of the fields that a dialog does not place, and the function that renders their inputs. */
export function useOtherFields(operation: OperationName, placed: ReadonlySet<string>) {
  const [others, setOthers] = useState<Readonly<Record<string, unknown>>>({});
  const renderOthers = (error: SchemaFieldsProps["error"]) => (
    <OtherFields
      operation={operation}
      placed={placed}
      value={others}
      error={error}
      onChange={(part) => setOthers({ ...others, ...part })}
    />
  );
  return { others, renderOthers };
}

interface SchemaFieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly value: unknown;
  readonly error: string | undefined;
  readonly onChange: (value: unknown) => void;
}

function SchemaField(props: SchemaFieldProps) {
  const { name: field, schema, value, error, onChange } = props;
  const t = useTexts();
  const { name = field, hint = plain(schema.description), unit, values } = t.fields[field] ?? {};
  if (field === "DCLocation") return <LocationField {...props} name={name} hint={hint} />;
  if (schema.type === "boolean")
    return (
      <SelectField
        label={name}
        hint={hint}
        error={error}
        value={typeof value === "boolean" ? String(value) : ""}
        options={[
          ["", t.common.default],
          ["true", t.common.yes],
          ["false", t.common.no],
        ]}
        onChange={({ target }) => onChange(target.value === "" ? undefined : target.value === "true")}
      />
    );
  if (schema.enum)
    return (
      <SelectField
        label={name}
        hint={hint}
        error={error}
        value={typeof value === "string" || typeof value === "number" ? value : ""}
        options={[
          ["", t.common.default],
          ...schema.enum.map((one) => [String(one), values?.[String(one)] ?? String(one)] as const),
        ]}
        onChange={({ target }) =>
          onChange(target.value === "" ? undefined : schema.type === "integer" ? Number(target.value) : target.value)
        }
      />
    );
  if (schema["x-labels"] === true) return <LabelsField name={name} value={value} error={error} onChange={onChange} />;
  if (schema.properties !== undefined)
    return <PartsField name={name} schema={schema} value={value} error={error} onChange={onChange} />;
  if (schema.type === "array")
    return <ListField name={name} schema={schema} value={value} error={error} onChange={onChange} />;
  const shared = { label: name, hint, error, unit };
  if (schema.type === "integer" || schema.type === "number")
    return <NumberField {...shared} value={typeof value === "number" ? value : undefined} onChange={onChange} />;
  return (
    <TextField
      {...shared}
      value={typeof value === "string" ? value : ""}
      onChange={({ target }) => onChange(target.value === "" ? undefined : target.value)}
    />
  );
}

/** A location is selected only where there are several. */
function LocationField({ name, hint, value, error, onChange }: SchemaFieldProps & { readonly hint: string }) {
  const t = useTexts();
  const { data: locations = [] } = useQuery(queriesOf(useData().client).locations());
  if (locations.length < 2) return null;
  return (
    <SelectField
      label={name}
      hint={hint}
      error={error}
      value={typeof value === "string" ? value : ""}
      options={[["", t.common.default], ...locations.map(({ TechTitle, Title }) => [TechTitle, Title] as const)]}
      onChange={({ target }) => onChange(target.value === "" ? undefined : target.value)}
    />
  );
}

/** The fields of an object, which is left out while none is filled in. */
function PartsField({ name, schema, value, error, onChange }: SchemaFieldProps) {
  const parts = (value ?? {}) as Readonly<Record<string, unknown>>;
  return (
    <fieldset className="stack tight" aria-label={name}>
      <legend className="field-label">{name}</legend>
      {Object.entries(schema.properties ?? {}).map(([part, of]) => (
        <SchemaField
          key={part}
          name={part}
          schema={of}
          value={parts[part]}
          error={error}
          onChange={(next) => {
            const filled = Object.entries({ ...parts, [part]: next }).filter(([, one]) => one !== undefined);
            onChange(filled.length === 0 ? undefined : Object.fromEntries(filled));
          }}
        />
      ))}
    </fieldset>
  );
}

/** A list as text: `A, AAAA`. */
function ListField({ name, schema, value, error, onChange }: SchemaFieldProps) {
  const [text, setText] = useState(() => (Array.isArray(value) ? value.join(", ") : ""));
  return (
    <TextField
      label={name}
      hint={plain(schema.description)}
      placeholder={schema.items?.enum?.slice(0, 3).join(", ")}
      error={error}
      value={text}
      onChange={({ target }) => {
        setText(target.value);
        const all = target.value.split(/[\s,]+/).filter((part) => part !== "");
        onChange(all.length === 0 ? undefined : all);
      }}
    />
  );
}

/** Labels as text: `stage=test, team=web`. */
export function LabelsField({ name, value, error, onChange }: Omit<SchemaFieldProps, "schema">) {
  const labels = (value ?? {}) as Labels;
  const [text, setText] = useState("");
  return (
    <TextField
      label={name}
      placeholder="stage=test, team=web"
      error={error}
      // The text as it was typed, while it is about the same labels.
      value={isEqual(readLabels(text), labels) ? text : labelText(labels)}
      onChange={({ target }) => {
        setText(target.value);
        const typed = readLabels(target.value);
        onChange(Object.keys(typed).length === 0 ? undefined : typed);
      }}
    />
  );
}
