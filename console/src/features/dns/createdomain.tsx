/** Adds a domain, empty or with the records of a zone file. */
import { useNavigate } from "@tanstack/react-router";
import { type SubmitEvent, useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { faultsOf, troubleOf } from "../../data/trouble.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { TroubleBox } from "../../ui/feedback.tsx";
import { AreaField, TextField } from "../../ui/field.tsx";

export function CreateDomain({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const [Name, setName] = useState("");
  const [Ip, setIp] = useState("");
  const [ZoneFile, setZoneFile] = useState("");
  const body = { Name, ...(Ip !== "" && { Ip }), ...(ZoneFile !== "" && { ZoneFile }) };
  const { run, isBusy, error } = useChange(() => client.createDomain({ body }), {
    done: (domain) => t.domains.created(domain.Name),
    onDone: ({ ID }) => void go({ to: "/dns/$id", params: { id: String(ID) } }),
    isQuiet: true,
  });
  const faults = faultsOf(error);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(undefined).catch(() => undefined);
  };
  return (
    <Dialog label={t.domains.createTitle} onClose={onClose}>
      <form onSubmit={submit}>
        <DialogHead title={t.domains.createTitle} onClose={onClose} />
        <TextField
          label={t.domains.name}
          hint={t.domains.nameHint}
          fault={faults["/Name"]}
          required
          autoFocus
          spellCheck={false}
          value={Name}
          onChange={({ target }) => setName(target.value)}
        />
        <TextField
          label={t.domains.ip}
          hint={t.domains.ipHint}
          fault={faults["/Ip"]}
          value={Ip}
          onChange={({ target }) => setIp(target.value)}
        />
        <AreaField
          label={t.domains.zone}
          hint={t.domains.zoneHint}
          fault={faults["/ZoneFile"]}
          value={ZoneFile}
          onChange={({ target }) => setZoneFile(target.value)}
        />
        {error !== null && Object.keys(faults).length === 0 && <TroubleBox trouble={troubleOf(error, t)} />}
        {Name !== "" && <RequestPanel request={{ operation: "createDomain", body }} />}
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={isBusy}>
            {t.domains.create}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
