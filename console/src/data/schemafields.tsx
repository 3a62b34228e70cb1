/** Inputs for the fields of an operation that a form does not place itself: a new field of the contract appears here. */
import type { OperationName } from "@brume/api/contract.ts";
import { useEffect, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Skeleton } from "../ui/feedback.tsx";
import { SelectField, TextField } from "../ui/field.tsx";

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
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
  readonly faults: Readonly<Record<string, string>>;
  readonly onChange: (part: Readonly<Record<string, unknown>>) => void;
}

/** Texts of the contract contain code in backticks. */
const plain = (text = ""): string => text.replaceAll("`", "");

export function SchemaFields({ operation, list, placed, value, faults, onChange }: SchemaFieldsProps) {
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
            fault={faults[`/${name}`]}
            onChange={(next) => onChange({ [name]: next })}
          />
        ))}
    </div>
  );
}

interface SchemaFieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly value: unknown;
  readonly fault: string | undefined;
  readonly onChange: (value: unknown) => void;
}

function SchemaField({ name, schema, value, fault, onChange }: SchemaFieldProps) {
  const t = useTexts();
  const hint = plain(schema.description);
  if (schema.type === "boolean")
    return (
      <SelectField
        label={name}
        hint={hint}
        fault={fault}
        value={typeof value === "boolean" ? String(value) : ""}
        options={[
          ["", "–"],
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
        fault={fault}
        value={typeof value === "string" || typeof value === "number" ? value : ""}
        options={[["", "–"], ...schema.enum.map((one) => [String(one), String(one)] as const)]}
        onChange={({ target }) =>
          onChange(target.value === "" ? undefined : schema.type === "integer" ? Number(target.value) : target.value)
        }
      />
    );
  if (schema["x-labels"] === true) return <LabelsField name={name} value={value} fault={fault} onChange={onChange} />;
  const isNumber = schema.type === "integer" || schema.type === "number";
  return (
    <TextField
      label={name}
      hint={hint}
      fault={fault}
      type={isNumber ? "number" : "text"}
      value={typeof value === "string" || typeof value === "number" ? value : ""}
      onChange={({ target }) =>
        onChange(target.value === "" ? undefined : isNumber ? target.valueAsNumber : target.value)
      }
    />
  );
}

/** Labels as text: `stage=test, team=web`. */
export function LabelsField({ name, value, fault, onChange }: Omit<SchemaFieldProps, "schema">) {
  const [text, setText] = useState(() =>
    Object.entries((value ?? {}) as Readonly<Record<string, string>>)
      .map((pair) => pair.join("="))
      .join(", "),
  );
  return (
    <TextField
      label={name}
      placeholder="stage=test, team=web"
      fault={fault}
      value={text}
      onChange={({ target }) => {
        setText(target.value);
        const pairs = target.value
          .split(",")
          .map((part) => part.trim())
          .filter((part) => part !== "")
          .map((part) => [part.split("=", 1)[0] ?? "", part.slice(part.indexOf("=") + 1 || part.length)] as const);
        onChange(pairs.length === 0 ? undefined : Object.fromEntries(pairs));
      }}
    />
  );
}
