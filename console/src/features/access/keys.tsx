/** SSH keys, which a server gets when it is created. */
import type { SshKey } from "@brume/api/catalog.ts";
import { useQuery } from "@tanstack/react-query";
import { type SubmitEvent, useMemo, useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { faultsOf, troubleOf } from "../../data/trouble.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { type Column, DataTable } from "../../ui/datatable.tsx";
import { Confirm, Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Empty, Skeleton, TroubleBox } from "../../ui/feedback.tsx";
import { AreaField, TextField } from "../../ui/field.tsx";

export function Keys() {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const mayWrite = useMay("server:write");
  const { data: keys, error, refetch } = useQuery(queriesOf(client).sshKeys());
  const [isAdding, setAdding] = useState(false);
  const [deleting, setDeleting] = useState<SshKey | null>(null);
  const remove = useChange((key: SshKey) => client.deleteSshKey({ path: { id: key.ID } }), {
    done: (_, { Title }) => t.access.deleted(Title),
  });
  const columns = useMemo<Column<SshKey>[]>(
    () => [
      { id: "title", name: t.access.keyTitle, width: "minmax(120px, 1fr)", isMain: true, cell: ({ Title }) => Title },
      { id: "type", name: t.access.keyType, width: "130px", cell: ({ Type }) => Type },
      {
        id: "fingerprint",
        name: t.access.fingerprint,
        width: "minmax(180px, 2fr)",
        isMain: true,
        cell: ({ Fingerprint }) => <span className="mono">{Fingerprint}</span>,
      },
      {
        id: "created",
        name: t.common.created,
        width: "130px",
        cell: ({ DateCreate }) => <span className="muted">{format.ago(DateCreate)}</span>,
      },
      ...(mayWrite
        ? [
            {
              id: "delete",
              name: t.common.delete,
              isNameHidden: true,
              width: "32px",
              isMain: true,
              isLoose: true,
              cell: (key: SshKey) => (
                <Button
                  kind="quiet"
                  size="small"
                  icon="trash"
                  aria-label={t.access.deleteKey(key.Title)}
                  onClick={() => setDeleting(key)}
                />
              ),
            },
          ]
        : []),
    ],
    [t, format, mayWrite],
  );
  if (error) return <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />;
  const button = mayWrite && (
    <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
      {t.access.addKey}
    </Button>
  );
  return (
    <>
      <div className="line apart">
        <p className="muted">{t.access.keysAbout}</p>
        {button}
      </div>
      {keys === undefined ? (
        <Skeleton />
      ) : (
        <DataTable
          label={t.access.tabs.keys}
          columns={columns}
          rows={keys}
          idOf={({ ID }) => ID}
          nameOf={({ Title }) => Title}
          empty={<Empty icon="access" title={t.access.keysEmpty} />}
        />
      )}
      {isAdding && <AddKey onClose={() => setAdding(false)} />}
      {deleting !== null && (
        <Confirm
          title={t.access.deleteKey(deleting.Title)}
          action={t.common.delete}
          onConfirm={() => remove.run(deleting)}
          onClose={() => setDeleting(null)}
        >
          <p>{t.access.deleteKeyAbout}</p>
        </Confirm>
      )}
    </>
  );
}

function AddKey({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const [Title, setTitle] = useState("");
  const [PublicKey, setPublicKey] = useState("");
  const { run, isBusy, error } = useChange(() => client.createSshKey({ body: { Title, PublicKey } }), {
    done: () => t.access.created(Title),
    onDone: onClose,
    isQuiet: true,
  });
  const faults = faultsOf(error);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(undefined).catch(() => undefined);
  };
  return (
    <Dialog label={t.access.addKey} onClose={onClose}>
      <form onSubmit={submit}>
        <DialogHead title={t.access.addKey} onClose={onClose} />
        <TextField
          label={t.access.keyTitle}
          required
          autoFocus
          fault={faults["/Title"]}
          value={Title}
          onChange={({ target }) => setTitle(target.value)}
        />
        <AreaField
          label={t.access.keyText}
          hint={t.access.keyHint}
          required
          fault={faults["/PublicKey"]}
          value={PublicKey}
          onChange={({ target }) => {
            setPublicKey(target.value);
            // The comment of the line is a good title.
            const [, , comment = ""] = target.value.trim().split(/\s+/);
            if (Title === "") setTitle(comment);
          }}
        />
        {error !== null && Object.keys(faults).length === 0 && <TroubleBox trouble={troubleOf(error, t)} />}
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={isBusy}>
            {t.access.addKey}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
