/** Dialogs that copy the disk of a server: to another server, or to an image. */
import type { Server } from "@brume/api/server.ts";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { OtherFields } from "../../data/schemafields.tsx";
import { Unread } from "../../data/unread.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { useNetworkOptions } from "./networkoptions.ts";

interface DialogProps {
  readonly server: Server;
  readonly onClose: () => void;
}

/** Fields with an input of their own, and those that this dialog leaves at their defaults; the others are generated from the contract. */
const placed = new Set(["Name", "NetworkId", "SshKeys", "WaitFor", "UserData"]);

export function CopyServer({ server, onClose }: DialogProps) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const networks = useNetworkOptions();
  const [link] = server.LinkedNetworks;
  const source = link === undefined || link.NetworkType === "PublicShared" ? undefined : link;
  const [form, setForm] = useState<Readonly<Record<string, unknown>>>({
    Name: `${server.Name}-copy`,
    NetworkId: source?.NetworkID,
  });
  const path = { id: server.ID };
  const body = Object.fromEntries(Object.entries(form).filter(([, value]) => value !== undefined && value !== ""));
  const set = (part: Readonly<Record<string, unknown>>): void => setForm({ ...form, ...part });
  return (
    <FormDialog
      title={t.copies.copyTitle(server.Name)}
      about={t.copies.copyAbout}
      action={t.copies.copy}
      kind="wide"
      request={{ operation: "copyServer", path, body }}
      isComplete
      send={(options) => client.copyServer({ path, body }, options)}
      onDone={({ ID }) => {
        onClose();
        void go({ to: "/servers/$id", params: { id: String(ID) } });
      }}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.common.name}
            maxLength={64}
            error={error("/Name")}
            value={typeof form["Name"] === "string" ? form["Name"] : ""}
            onChange={({ target }) => set({ Name: target.value })}
          />
          <SelectField
            label={t.create.network}
            hint={t.copies.networkHint}
            error={error("/NetworkId")}
            value={typeof form["NetworkId"] === "number" ? String(form["NetworkId"]) : ""}
            options={[
              ["", t.create.sharedNetwork],
              // A token without the scope of networks knows only that of the server.
              ...(source !== undefined && !networks.options.some(({ id }) => id === source.NetworkID)
                ? [[String(source.NetworkID), source.NetworkName] as const]
                : []),
              ...networks.options.map(({ id, name, about }) => [String(id), `${name} (${about})`] as const),
            ]}
            onChange={({ target }) => set({ NetworkId: target.value === "" ? undefined : Number(target.value) })}
          />
          <Unread of={networks.reads} />
          <OtherFields operation="copyServer" placed={placed} value={form} error={error} onChange={set} />
        </>
      )}
    </FormDialog>
  );
}

export function TakeImage({ server, onClose }: DialogProps) {
  const t = useTexts();
  const { client } = useData();
  const [Name, setName] = useState(server.Name);
  const body = { Name, ServerID: server.ID };
  return (
    <FormDialog
      title={t.copies.imageTitle(server.Name)}
      about={t.images.sourceAbout.server}
      action={t.copies.image}
      request={{ operation: "createImage", body }}
      isComplete={Name !== ""}
      send={(options) => client.createImage({ body }, options)}
      done={(image) => ({ kind: "good", text: t.images.started(image.Name), detail: t.images.progressAt })}
      onClose={onClose}
    >
      {(error) => (
        <TextField
          label={t.common.name}
          required
          maxLength={64}
          error={error("/Name") ?? error("/ServerID")}
          value={Name}
          onChange={({ target }) => setName(target.value)}
        />
      )}
    </FormDialog>
  );
}
