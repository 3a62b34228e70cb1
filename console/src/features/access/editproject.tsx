/** Creates a project, or changes its name, its quotas, its labels, and whether it is blocked. */
import { type Project, type Quota, quotaNames, quotas } from "@brume/api/account.ts";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import type { Labels } from "../../data/label.ts";
import { queriesOf } from "../../data/queries.ts";
import { LabelsField } from "../../data/schemafields.tsx";
import { hasFields, isEqual, pickFields, useUndo } from "../../data/undo.ts";
import { Unread } from "../../data/unread.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Check, NumberField, TextField } from "../../ui/field.tsx";

interface Dialogs {
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export const CreateProject = (dialogs: Dialogs) => <ProjectForm project={null} {...dialogs} />;

export function EditProject({ id, ...dialogs }: Dialogs & { id: number }) {
  const t = useTexts();
  const read = useQuery(queriesOf(useData().client).projectOf(id));
  if (read.data !== undefined) return <ProjectForm project={read.data} {...dialogs} />;
  if (read.error === null) return null;
  return (
    <Dialog label={t.access.editProject} kind="wide" onClose={dialogs.onClose}>
      <div className="inner">
        <DialogHead title={t.access.editProject} onClose={dialogs.onClose} />
        <Unread of={[read]} />
      </div>
    </Dialog>
  );
}

/** Units of the quotas that are no numbers of objects. */
export const quotaUnits: Readonly<Partial<Record<Quota, "MB" | "GB">>> = { RAM: "MB", HDD: "GB" };

/** What a new project has. */
const blank = {
  Name: "",
  IsBlocked: false,
  Labels: {} as Labels,
  Quotas: Object.fromEntries(quotaNames.map((name) => [name, quotas[name].default])) as Record<Quota, number>,
};

function ProjectForm({ project, onDone, onClose }: Dialogs & { project: Project | null }) {
  const t = useTexts();
  const { client } = useData();
  const undo = useUndo();
  const stored = project ?? blank;
  const [Name, setName] = useState(stored.Name);
  const [IsBlocked, setBlocked] = useState(stored.IsBlocked);
  const [Labels, setLabels] = useState<Labels>(stored.Labels);
  const [limits, setLimits] = useState<Readonly<Partial<Record<Quota, number>>>>(stored.Quotas);
  const Quotas = Object.fromEntries(
    Object.entries(limits).filter(([name, limit]) => limit !== stored.Quotas[name as Quota]),
  );
  const named = {
    ...(Name !== stored.Name && { Name }),
    ...(IsBlocked !== stored.IsBlocked && { IsBlocked }),
    ...(!isEqual(Labels, stored.Labels) && { Labels }),
  };
  const change = { ...named, ...(Object.keys(Quotas).length > 0 && { Quotas }) };
  /** Returns what undoes the change: none after a block, because its servers were on or off before. */
  const undoOf = ({ ID: id }: Project) => {
    const path = { id };
    const of = `project:${id}`;
    if (project === null)
      return { run: () => client.deleteProject({ path }).then(onDone), done: t.access.deleted(Name), of };
    if ("IsBlocked" in named) return undefined;
    const before = { ...pickFields<Partial<Project>>(project, named), Quotas: pickFields(project.Quotas, Quotas) };
    const restore = undo({
      read: () => client.raw.readProject({ path }),
      isSame: ({ Quotas: now, ...rest }) => hasFields(rest, named) && hasFields(now, Quotas),
      write: (options) => client.updateProject({ path, body: before }, options),
    });
    return { run: () => restore().then(onDone), done: t.common.undone(stored.Name), of };
  };
  return (
    <FormDialog<Project>
      title={project === null ? t.access.createProject : t.access.editProject}
      action={project === null ? t.access.createProject : t.common.save}
      kind="wide"
      request={
        project === null
          ? { operation: "createProject", body: { Name, ...change } }
          : { operation: "updateProject", path: { id: project.ID }, body: change }
      }
      isComplete={Name !== "" && Object.keys(change).length > 0}
      send={(options) =>
        project === null
          ? client.createProject({ body: { Name, ...change } }, options)
          : client.updateProject({ path: { id: project.ID }, body: change }, options)
      }
      done={() => (project === null ? t.access.created(Name) : t.server.saved)}
      undo={undoOf}
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.common.name}
            required
            maxLength={64}
            error={error("/Name")}
            value={Name}
            onChange={({ target }) => setName(target.value)}
          />
          {project !== null && (
            <Check
              label={t.access.block}
              hint={t.access.blockAbout}
              checked={IsBlocked}
              onChange={({ target }) => setBlocked(target.checked)}
            />
          )}
          <LabelsField
            name={t.common.labels}
            value={Labels}
            error={error("/Labels")}
            onChange={(value) => setLabels((value ?? {}) as Labels)}
          />
          <fieldset className="columns narrow" aria-label={t.access.limits}>
            <legend className="field-label">{t.access.limits}</legend>
            {quotaNames.map((name) => (
              <NumberField
                key={name}
                label={t.access.quotas[name] ?? name}
                unit={quotaUnits[name]}
                min={0}
                error={error(`/Quotas/${name}`)}
                value={limits[name]}
                onChange={(value) => {
                  const { [name]: _, ...others } = limits;
                  setLimits(value === undefined ? others : { ...others, [name]: value });
                }}
              />
            ))}
          </fieldset>
        </>
      )}
    </FormDialog>
  );
}
