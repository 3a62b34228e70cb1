/** Creates a public or a private network. Fields of the contract that have no input here are added from it. */
import type { Client } from "@brume/api/client.ts";
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { BandwidthField } from "../../data/bandwidthfield.tsx";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { serversOf } from "../../data/networkview.ts";
import { OtherFields } from "../../data/schemafields.tsx";
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

interface FieldsProps {
  readonly form: Body;
  readonly error: (pointer: string) => string | undefined;
  readonly set: (part: Readonly<Record<string, unknown>>) => void;
}

interface KindProps {
  readonly operation: "createPublicNetwork" | "createNetwork";
  readonly title: string;
  readonly about: string;
  readonly first: Body;
  /** Fields of the body that have an input in `fields`, beside the name. */
  readonly placed: readonly string[];
  readonly fields: (props: FieldsProps) => ReactNode;
  readonly onClose: () => void;
}

function CreateNetwork({ operation, title, about, first, placed, fields, onClose }: KindProps) {
  const t = useTexts();
  const go = useNavigate();
  const router = useRouter();
  const { client } = useData();
  const [form, setForm] = useState(first);
  const set: FieldsProps["set"] = (part) => setForm((before) => ({ ...before, ...part }));
  const body = filled(form);
  return (
    <FormDialog<PublicNetwork | Network>
      title={title}
      about={about}
      action={title}
      request={{ operation, body }}
      isComplete={form.Name !== ""}
      send={(options) => client[operation]({ body }, options)}
      done={({ Name }) => t.networks.created(Name)}
      undo={(network) => ({
        run: async () => {
          await remove(client, network);
          // The user may have left the page meanwhile.
          if (router.state.location.pathname.endsWith(pageOf(network)))
            await go({ to: "/networks", search: "Id" in network ? {} : { tab: "private" } });
        },
        done: t.networks.deleted(network.Name),
        of: "Id" in network ? `publicnetwork:${network.Id}` : `network:${network.ID}`,
        page: pageOf(network),
      })}
      onDone={(network) => void go({ to: pageOf(network) })}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.common.name}
            required
            autoFocus
            maxLength={64}
            hint={t.create.nameHint}
            error={error("/Name")}
            value={form.Name}
            onChange={({ target }) => set({ Name: target.value })}
          />
          {fields({ form, error, set })}
          <OtherFields
            operation={operation}
            placed={new Set(["Name", ...placed])}
            value={form}
            error={error}
            onChange={set}
          />
        </>
      )}
    </FormDialog>
  );
}

/** Deletes a network to undo its creation: the service refuses to delete one that has servers. */
const remove = (client: Client, network: PublicNetwork | Network): Promise<void> =>
  "Id" in network
    ? client.deletePublicNetwork({ path: { id: network.Id } })
    : client.deleteNetwork({ path: { id: network.ID } });

/** Address of the page of a network. */
const pageOf = (network: PublicNetwork | Network): string =>
  "Id" in network ? `/networks/${network.Id}` : `/networks/private/${network.ID}`;

interface CreateProps {
  readonly onClose: () => void;
}

export function CreatePublicNetwork({ onClose }: CreateProps) {
  const t = useTexts();
  return (
    <CreateNetwork
      operation="createPublicNetwork"
      title={t.networks.createPublic}
      about={t.networks.createPublicAbout}
      first={{ Name: "", NetworkCapacity: "29", Bandwidth: 100 }}
      placed={["NetworkCapacity", "Bandwidth"]}
      onClose={onClose}
      fields={({ form, error, set }) => (
        <div className="columns">
          <SelectField
            label={t.networks.capacity}
            error={error("/NetworkCapacity")}
            value={textOf(form["NetworkCapacity"])}
            options={prefixes.map((prefix) => [String(prefix), t.networks.capacityOf(prefix, serversOf(prefix))])}
            onChange={({ target }) => set({ NetworkCapacity: target.value })}
          />
          <BandwidthField
            value={form["Bandwidth"] as number | undefined}
            error={error("/Bandwidth")}
            onChange={(Bandwidth) => set({ Bandwidth })}
          />
        </div>
      )}
    />
  );
}

export function CreatePrivateNetwork({ onClose }: CreateProps) {
  const t = useTexts();
  return (
    <CreateNetwork
      operation="createNetwork"
      title={t.networks.createPrivate}
      about={t.networks.createPrivateAbout}
      first={{ Name: "" }}
      placed={["CIDR", "Gateway"]}
      onClose={onClose}
      fields={({ form, error, set }) => (
        <>
          <TextField
            label={t.networks.cidr}
            hint={t.networks.cidrHint}
            error={error("/CIDR")}
            value={textOf(form["CIDR"])}
            onChange={({ target }) => set({ CIDR: target.value })}
          />
          <TextField
            label={t.networks.gateway}
            hint={t.networks.gatewayHint}
            error={error("/Gateway")}
            value={textOf(form["Gateway"])}
            onChange={({ target }) => set({ Gateway: target.value })}
          />
        </>
      )}
    />
  );
}
