/** Adds a domain, empty or with the records of a zone file. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { AreaField, TextField } from "../../ui/field.tsx";

export function CreateDomain({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const [Name, setName] = useState("");
  const [Ip, setIp] = useState("");
  const [ZoneFile, setZoneFile] = useState("");
  const body = { Name, ...(Ip !== "" && { Ip }), ...(ZoneFile !== "" && { ZoneFile }) };
  return (
    <FormDialog
      title={t.domains.createTitle}
      action={t.domains.create}
      request={{ operation: "createDomain", body }}
      isComplete={Name !== ""}
      send={(options) => client.createDomain({ body }, options)}
      done={(domain) => t.domains.created(domain.Name)}
      onDone={({ ID }) => void go({ to: "/dns/$id", params: { id: String(ID) } })}
      onClose={onClose}
    >
      {(fault) => (
        <>
          <TextField
            label={t.domains.name}
            hint={t.domains.nameHint}
            fault={fault("/Name")}
            required
            spellCheck={false}
            value={Name}
            onChange={({ target }) => setName(target.value)}
          />
          <TextField
            label={t.domains.ip}
            hint={t.domains.ipHint}
            fault={fault("/Ip")}
            value={Ip}
            onChange={({ target }) => setIp(target.value)}
          />
          <AreaField
            label={t.domains.zone}
            hint={t.domains.zoneHint}
            fault={fault("/ZoneFile")}
            value={ZoneFile}
            onChange={({ target }) => setZoneFile(target.value)}
          />
        </>
      )}
    </FormDialog>
  );
}
