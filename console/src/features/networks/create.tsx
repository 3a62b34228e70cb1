/** Creates a public or a private network. Fields of the contract that have no input here are added from it. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { serversOf } from "../../data/networkview.ts";
import { SchemaFields } from "../../data/schemafields.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";

const prefixes = [30, 29, 28, 27, 26, 25, 24];

type Body = { readonly Name: string } & Readonly<Record<string, unknown>>;

/** Leaves out fields that are not filled in. */
const filled = ({ Name, ...rest }: Body): Body => ({
  Name,
  ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined && value !== "")),
});

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

const placedPublic = new Set(["Name", "NetworkCapacity", "Bandwidth"]);

export function CreatePublicNetwork({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const [form, setForm] = useState<Body>({ Name: "", NetworkCapacity: "29", Bandwidth: 100 });
  const set = (part: Readonly<Record<string, unknown>>): void => setForm((before) => ({ ...before, ...part }));
  const body = filled(form);
  return (
    <FormDialog
      title={t.networks.createPublic}
      about={t.networks.createPublicAbout}
      action={t.common.create}
      request={{ operation: "createPublicNetwork", body }}
      isComplete={form.Name !== ""}
      send={(options) => client.createPublicNetwork({ body }, options)}
      done={({ Name }) => t.networks.created(Name)}
      onDone={({ Id }) => void go({ to: "/networks/$id", params: { id: String(Id) } })}
      onClose={onClose}
    >
      {(fault) => (
        <>
          <TextField
            label={t.common.name}
            required
            autoFocus
            maxLength={64}
            fault={fault("/Name")}
            value={form.Name}
            onChange={({ target }) => set({ Name: target.value })}
          />
          <div className="columns">
            <SelectField
              label={t.networks.capacity}
              fault={fault("/NetworkCapacity")}
              value={textOf(form["NetworkCapacity"])}
              options={prefixes.map((prefix) => [String(prefix), t.networks.capacityOf(prefix, serversOf(prefix))])}
              onChange={({ target }) => set({ NetworkCapacity: target.value })}
            />
            <BandwidthField
              value={form["Bandwidth"] as number | undefined}
              fault={fault("/Bandwidth")}
              onChange={(Bandwidth) => set({ Bandwidth })}
            />
          </div>
          <OtherFields operation="createPublicNetwork" placed={placedPublic} form={form} fault={fault} onChange={set} />
        </>
      )}
    </FormDialog>
  );
}

const placedPrivate = new Set(["Name", "CIDR", "Gateway"]);

export function CreatePrivateNetwork({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const [form, setForm] = useState<Body>({ Name: "" });
  const set = (part: Readonly<Record<string, unknown>>): void => setForm((before) => ({ ...before, ...part }));
  const body = filled(form);
  return (
    <FormDialog
      title={t.networks.createPrivate}
      about={t.networks.createPrivateAbout}
      action={t.common.create}
      request={{ operation: "createNetwork", body }}
      isComplete={form.Name !== ""}
      send={(options) => client.createNetwork({ body }, options)}
      done={({ Name }) => t.networks.created(Name)}
      onDone={({ ID }) => void go({ to: "/networks/private/$id", params: { id: String(ID) } })}
      onClose={onClose}
    >
      {(fault) => (
        <>
          <TextField
            label={t.common.name}
            required
            autoFocus
            maxLength={64}
            fault={fault("/Name")}
            value={form.Name}
            onChange={({ target }) => set({ Name: target.value })}
          />
          <TextField
            label={t.networks.cidr}
            hint={t.networks.cidrHint}
            fault={fault("/CIDR")}
            value={textOf(form["CIDR"])}
            onChange={({ target }) => set({ CIDR: target.value })}
          />
          <TextField
            label={t.networks.gateway}
            hint={t.networks.gatewayHint}
            fault={fault("/Gateway")}
            value={textOf(form["Gateway"])}
            onChange={({ target }) => set({ Gateway: target.value })}
          />
          <OtherFields operation="createNetwork" placed={placedPrivate} form={form} fault={fault} onChange={set} />
        </>
      )}
    </FormDialog>
  );
}

/** Mbit/s. Undefined: not filled in. */
export function BandwidthField({
  value,
  fault,
  onChange,
}: {
  value: number | undefined;
  fault: string | undefined;
  onChange: (value: number | undefined) => void;
}) {
  const t = useTexts();
  return (
    <TextField
      label={t.networks.bandwidth}
      unit="Mbit/s"
      type="number"
      min={1}
      fault={fault}
      value={value ?? ""}
      onChange={({ target }) => onChange(target.value === "" ? undefined : target.valueAsNumber)}
    />
  );
}

interface OtherFieldsProps {
  readonly operation: "createPublicNetwork" | "createNetwork";
  readonly placed: ReadonlySet<string>;
  readonly form: Body;
  readonly fault: (pointer: string) => string | undefined;
  readonly onChange: (part: Readonly<Record<string, unknown>>) => void;
}

/** The fields of the contract that a form does not place, folded. */
function OtherFields({ operation, placed, form, fault, onChange }: OtherFieldsProps) {
  const t = useTexts();
  const faults = Object.fromEntries(
    ["IsDHCP", "DCLocation", "Labels"].flatMap((name) => {
      const found = fault(`/${name}`);
      return found === undefined ? [] : [[`/${name}`, found]];
    }),
  );
  return (
    <details className="panel">
      <summary>{t.create.advanced}</summary>
      <div className="body">
        <SchemaFields operation={operation} placed={placed} value={form} faults={faults} onChange={onChange} />
      </div>
    </details>
  );
}
