/** The projects of the installation, and the quotas of the own one. */
import { useQuery } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { faultsOf } from "../../data/trouble.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Meter, Panel, State } from "../../ui/page.tsx";

export function Projects() {
  const t = useTexts();
  const format = useFormat();
  const { client, queries } = useData();
  const reads = queriesOf(client);
  const account = useQuery(reads.projects()).data;
  const own = useQuery(reads.project()).data;
  const [Name, setName] = useState("");
  const { run, isBusy, error } = useChange(() => client.createProject({ body: { Name } }), {
    done: () => t.access.created(Name),
    onDone() {
      setName("");
      void queries.invalidateQueries({ queryKey: ["project", "list"] });
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(undefined).catch(() => undefined);
  };
  return (
    <>
      <p className="muted">{t.access.projectsAbout}</p>
      <div className="columns">
        <Panel title={t.access.tabs.projects} isFlush>
          <ul className="list padded">
            {account?.Projects.map((project) => (
              <li key={project.ID} className="line apart">
                <span className="break">{project.Name}</span>
                {project.IsBlocked && <State tone="warn">{t.access.blocked}</State>}
              </li>
            ))}
          </ul>
          <form className="body stack tight" onSubmit={submit}>
            <TextField
              label={t.common.name}
              required
              fault={faultsOf(error)["/Name"]}
              value={Name}
              onChange={({ target }) => setName(target.value)}
            />
            <div className="line">
              <Button type="submit" isBusy={isBusy}>
                {t.access.createProject}
              </Button>
            </div>
          </form>
        </Panel>
        {own && (
          <Panel title={`${t.access.usage}: ${own.Name}`}>
            <div className="stack tight">
              {Object.entries(own.Usage).map(([name, used]) => {
                const limit = own.Quotas[name as keyof typeof own.Usage];
                return (
                  <div key={name} className="stack tight">
                    <div className="line apart">
                      <span>{name}</span>
                      <span className="muted number">{t.table.of(format.number(used), format.number(limit))}</span>
                    </div>
                    <Meter label={name} value={used} limit={limit} />
                  </div>
                );
              })}
            </div>
          </Panel>
        )}
      </div>
    </>
  );
}
