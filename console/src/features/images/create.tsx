/** Creates an image: from the disk of a server, from an address, from a file of this computer, or from a file in the import folder of the host. */
import { families } from "@brume/api/catalog.ts";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useData } from "../../data/data.tsx";
import { digestFile } from "../../data/digest.ts";
import { FormDialog } from "../../data/formdialog.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useOtherFields } from "../../data/schemafields.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Segments } from "../../ui/feedback.tsx";
import { Field, rewrite, SelectField, TextField } from "../../ui/field.tsx";

type Source = "url" | "upload" | "server" | "file";

const placed: ReadonlySet<string> = new Set(["Name", "ServerID", "Url", "File", "Sha256", "Size", "Family", "MinRAM"]);

export function CreateImage({ server, onClose }: { server?: number; onClose: () => void }) {
  const t = useTexts();
  const format = useFormat();
  const { client, uploads } = useData();
  const [chosen, setChosen] = useState<File | null>(null);
  const [read, setRead] = useState(0);
  /** SHA-256 of the chosen file; null: it cannot be read. */
  const [digest, setDigest] = useState<string | null>("");
  const servers = useQuery(queriesOf(client).servers()).data ?? [];
  const [source, setSource] = useState<Source>(server === undefined ? "url" : "server");
  const [form, setForm] = useState({
    Name: "",
    Url: "",
    Sha256: "",
    File: "",
    ServerID: server === undefined ? "" : String(server),
    Family: "Linux" as (typeof families)[number],
    MinRAM: "",
  });
  const set = (part: Partial<typeof form>): void => setForm({ ...form, ...part });
  const { Name, Url, Sha256, File, ServerID, Family, MinRAM } = form;
  const { others, renderOthers } = useOtherFields("createImage", placed);
  const described = { Family, ...(MinRAM !== "" && { MinRAM: Number(MinRAM) }) };
  const content = {
    server: { Name, ServerID: Number(ServerID) },
    url: { Name, Url, Sha256, ...described },
    upload: { Name, Size: chosen?.size ?? 0, Sha256: digest ?? "", ...described },
    file: { Name, File, ...(Sha256 !== "" && { Sha256 }), ...described },
  }[source];
  const body = { ...content, ...others };
  const isComplete =
    Name !== "" &&
    {
      server: ServerID !== "",
      url: Url !== "" && Sha256 !== "",
      upload: chosen !== null && digest !== null && digest !== "",
      file: File !== "",
    }[source];
  // The file that is read now; a later choice ends it.
  useEffect(() => {
    if (chosen === null) return undefined;
    const controller = new AbortController();
    digestFile(chosen, setRead, controller.signal).then(setDigest, () => {
      if (!controller.signal.aborted) setDigest(null);
    });
    return () => controller.abort();
  }, [chosen]);
  const choose = (file: File | null): void => {
    setRead(0);
    setDigest("");
    setChosen(file);
    if (file !== null && Name === "") set({ Name: file.name.replace(/\.(qcow2|raw|img|iso)$/i, "").slice(0, 64) });
  };
  return (
    <FormDialog
      title={t.images.create}
      action={t.images.create}
      kind="wide"
      request={{ operation: "createImage", body }}
      isComplete={isComplete}
      send={(options) => client.createImage({ body }, options)}
      done={(image) => t.images.started(image.Name)}
      onDone={(image) => {
        if (chosen !== null && source === "upload") uploads.start(image, chosen, true);
        onClose();
      }}
      onClose={onClose}
    >
      {(error) => (
        <>
          <Segments
            label={t.images.source}
            value={source}
            options={[
              ["upload", t.images.sources.upload],
              ["url", t.images.sources.url],
              ["server", t.images.sources.server],
              ["file", t.images.sources.file],
            ]}
            onChange={(next) => {
              setSource(next);
              // The field for the file begins empty when it is shown again.
              choose(null);
            }}
          />
          <p className="muted">{t.images.sourceAbout[source]}</p>
          <TextField
            label={t.common.name}
            required
            autoFocus
            maxLength={64}
            error={error("/Name")}
            value={Name}
            onChange={({ target }) => set({ Name: target.value })}
          />
          {source === "server" && (
            <SelectField
              label={t.images.from}
              error={error("/ServerID")}
              value={ServerID}
              options={[
                ["", t.images.selectServer],
                ...servers.map(({ ID, Name: name }) => [String(ID), name] as const),
              ]}
              onChange={({ target }) => set({ ServerID: target.value })}
            />
          )}
          {source === "upload" && (
            <Field
              label={t.images.uploadFile}
              hint={
                chosen === null || digest !== ""
                  ? t.images.uploadHint
                  : t.images.reading(format.number(Math.floor(read * 100)))
              }
              error={digest === null ? t.images.unreadable : error("/Size")}
            >
              {(ids) => (
                <input
                  {...ids}
                  className="input"
                  type="file"
                  onChange={({ target }) => {
                    const file = target.files?.[0];
                    if (file !== undefined && file.size > 0) choose(file);
                  }}
                />
              )}
            </Field>
          )}
          {source === "url" && (
            <TextField
              label={t.images.url}
              type="url"
              spellCheck={false}
              placeholder="https://"
              error={error("/Url")}
              value={Url}
              onChange={({ target }) => set({ Url: target.value })}
            />
          )}
          {source === "file" && (
            <TextField
              label={t.images.file}
              hint={t.images.fileHint}
              spellCheck={false}
              error={error("/File")}
              value={File}
              onChange={({ target }) => set({ File: target.value })}
            />
          )}
          {source !== "server" && (
            <>
              <TextField
                label="SHA-256"
                hint={source === "upload" ? t.images.digestOfFile : t.images.digestHint}
                spellCheck={false}
                readOnly={source === "upload"}
                error={error("/Sha256")}
                value={source === "upload" ? (digest ?? "") : Sha256}
                onChange={({ target }) => set({ Sha256: rewrite(target, target.value.trim()) })}
              />
              <div className="columns">
                <SelectField
                  label={t.images.system}
                  error={error("/Family")}
                  value={Family}
                  options={families.map((name) => [name, name])}
                  onChange={({ target }) => set({ Family: target.value as typeof Family })}
                />
                <TextField
                  label={t.images.memory}
                  type="number"
                  unit="MB"
                  placeholder="128"
                  error={error("/MinRAM")}
                  value={MinRAM}
                  onChange={({ target }) => set({ MinRAM: target.value })}
                />
              </div>
            </>
          )}
          {renderOthers(error)}
        </>
      )}
    </FormDialog>
  );
}
