/** Creates a project, or changes its name, its quotas, and whether it is blocked. */
import { type Project, type Quota, quotaNames } from "@brume/api/account.ts";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Check, TextField } from "../../ui/field.tsx";

interface Dialogs {
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export function CreateProject({ onDone, onClose }: Dialogs) {
  const t = useTexts();
  const { client } = useData();
  const [Name, setName] = useState("");
  const body = { Name };
  return (
    <FormDialog
      title={t.access.createProject}
      action={t.access.createProject}
      request={{ operation: "createProject", body }}
      isComplete={Name !== ""}
      send={(options) => client.createProject({ body }, options)}
      done={() => t.access.created(Name)}
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    >
      {(fault) => (
        <TextField
          label={t.common.name}
          required
          maxLength={64}
          fault={fault("/Name")}
          value={Name}
          onChange={({ target }) => setName(target.value)}
        />
      )}
    </FormDialog>
  );
}

export function EditProject({ id, ...dialogs }: Dialogs & { id: number }) {
  const { data } = useQuery(queriesOf(useData().client).projectOf(id));
  return data === undefined ? null : <EditForm project={data} {...dialogs} />;
}

function EditForm({ project, onDone, onClose }: Dialogs & { project: Project }) {
  const t = useTexts();
  const { client } = useData();
  const [Name, setName] = useState(project.Name);
  const [IsBlocked, setBlocked] = useState(project.IsBlocked);
  const [quotas, setQuotas] = useState<Readonly<Record<Quota, string>>>(
    () => Object.fromEntries(quotaNames.map((name) => [name, String(project.Quotas[name])])) as Record<Quota, string>,
  );
  const changed = quotaNames.filter((name) => quotas[name] !== "" && Number(quotas[name]) !== project.Quotas[name]);
  const path = { id: project.ID };
  const body = {
    ...(Name !== project.Name && { Name }),
    ...(IsBlocked !== project.IsBlocked && { IsBlocked }),
    ...(changed.length > 0 && { Quotas: Object.fromEntries(changed.map((name) => [name, Number(quotas[name])])) }),
  };
  return (
    <FormDialog
      title={t.access.editProject}
      action={t.common.save}
      kind="wide"
      request={{ operation: "updateProject", path, body }}
      isComplete={Object.keys(body).length > 0}
      send={(options) => client.updateProject({ path, body }, options)}
      done={() => t.server.saved}
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    >
      {(fault) => (
        <>
          <TextField
            label={t.common.name}
            required
            maxLength={64}
            fault={fault("/Name")}
            value={Name}
            onChange={({ target }) => setName(target.value)}
          />
          <Check
            label={t.access.block}
            hint={t.access.blockAbout}
            checked={IsBlocked}
            onChange={({ target }) => setBlocked(target.checked)}
          />
          <fieldset className="columns narrow" aria-label={t.access.limits}>
            {quotaNames.map((name) => (
              <TextField
                key={name}
                label={t.access.quotas[name] ?? name}
                type="number"
                min={0}
                fault={fault(`/Quotas/${name}`)}
                value={quotas[name]}
                onChange={({ target }) => setQuotas({ ...quotas, [name]: target.value })}
              />
            ))}
          </fieldset>
        </>
      )}
    </FormDialog>
  );
}
