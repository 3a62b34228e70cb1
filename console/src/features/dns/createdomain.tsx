/** Adds a domain, empty or with the records of a zone file. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { useOtherFields } from "../../data/schemafields.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Check, TextField } from "../../ui/field.tsx";
import { FileTextField } from "../../ui/filetext.tsx";

const placed: ReadonlySet<string> = new Set(["Name", "Ip", "Migrate", "ZoneFile"]);

export function CreateDomain({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const [Name, setName] = useState("");
  const [Ip, setIp] = useState("");
  const [ZoneFile, setZoneFile] = useState("");
  const [Migrate, setMigrate] = useState(false);
  const { others, renderOthers } = useOtherFields("createDomain", placed);
  const body = {
    Name,
    ...(Ip !== "" && { Ip }),
    ...(Migrate && { Migrate }),
    ...(ZoneFile !== "" && !Migrate && { ZoneFile }),
    ...others,
  };
  return (
    <FormDialog
      title={t.domains.create}
      action={t.domains.create}
      request={{ operation: "createDomain", body, files: { ZoneFile: `${Name}.zone` } }}
      isComplete={Name !== ""}
      send={(options) => client.createDomain({ body }, options)}
      done={(domain) => t.domains.created(domain.Name)}
      onDone={({ ID }) => void go({ to: "/dns/$id", params: { id: String(ID) } })}
      onClose={onClose}
      // A name that another project has can be claimed.
      remedy={(code) =>
        code === "domain_not_available" && (
          <p>
            <Link to="/dns" search={{ tab: "claims", create: "1", q: Name }}>
              {t.claims.instead}
            </Link>
          </p>
        )
      }
    >
      {(error) => (
        <>
          <TextField
            label={t.domains.name}
            hint={t.domains.nameHint}
            error={error("/Name")}
            required
            spellCheck={false}
            value={Name}
            onChange={({ target }) => setName(target.value)}
          />
          <TextField
            label={t.domains.ip}
            hint={t.domains.ipHint}
            error={error("/Ip")}
            value={Ip}
            onChange={({ target }) => setIp(target.value)}
          />
          <Check
            label={t.domains.migrate}
            hint={t.domains.migrateHint}
            checked={Migrate}
            onChange={({ target }) => setMigrate(target.checked)}
          />
          {!Migrate && (
            <FileTextField
              label={t.domains.zone}
              hint={t.domains.zoneHint}
              error={error("/ZoneFile")}
              value={ZoneFile}
              onText={setZoneFile}
            />
          )}
          {renderOthers(error)}
        </>
      )}
    </FormDialog>
  );
}
