/** SSH keys, which a server gets when it is created. */
import type { SshKey } from "@brume/api/catalog.ts";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMay } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { queriesOf } from "../../data/queries.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, Skeleton, TroubleBox } from "../../ui/feedback.tsx";
import { AreaField, TextField } from "../../ui/field.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";

export function Keys() {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const mayWrite = useMay("server:write");
  const { data: keys, error, refetch } = useQuery(queriesOf(client).sshKeys());
  const [isAdding, setAdding] = useState(false);
  const [deleting, setDeleting] = useState<SshKey | null>(null);
  const columns = useMemo<Column<SshKey>[]>(
    () => [
      { id: "title", name: t.access.keyTitle, width: "minmax(120px, 1fr)", isMain: true, cell: ({ Title }) => Title },
      { id: "type", name: t.access.keyType, width: "130px", cell: ({ Type }) => Type },
      {
        id: "fingerprint",
        name: t.access.fingerprint,
        width: "minmax(180px, 2fr)",
        isBelow: true,
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
            rowButton<SshKey>({
              name: t.common.delete,
              icon: "trash",
              labelOf: ({ Title }) => t.access.deleteKey(Title),
              onPress: setDeleting,
            }),
          ]
        : []),
    ],
    [t, format, mayWrite],
  );
  if (error) return <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />;
  return (
    <>
      <div className="line apart">
        <p className="muted">{t.access.keysAbout}</p>
        {mayWrite && (
          <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
            {t.access.addKey}
          </Button>
        )}
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
          empty={
            <Empty
              icon="access"
              title={t.access.keysEmpty}
              command="brume ssh-key create laptop --public-key @~/.ssh/id_ed25519.pub"
            />
          }
        />
      )}
      {isAdding && <AddKey onClose={() => setAdding(false)} />}
      {deleting !== null && (
        <ConfirmRequest
          title={t.access.deleteKey(deleting.Title)}
          action={t.common.delete}
          request={{ operation: "deleteSshKey", path: { id: deleting.ID } }}
          send={() => client.deleteSshKey({ path: { id: deleting.ID } })}
          done={() => t.access.deleted(deleting.Title)}
          onClose={() => setDeleting(null)}
        >
          <p>{t.access.deleteKeyAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}

function AddKey({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const [Title, setTitle] = useState("");
  const [PublicKey, setPublicKey] = useState("");
  const body = { Title, PublicKey };
  return (
    <FormDialog
      title={t.access.addKey}
      action={t.access.addKey}
      request={{ operation: "createSshKey", body }}
      isComplete={Title !== "" && PublicKey !== ""}
      send={(options) => client.createSshKey({ body }, options)}
      done={() => t.access.created(Title)}
      onClose={onClose}
    >
      {(fault) => (
        <>
          <TextField
            label={t.access.keyTitle}
            required
            fault={fault("/Title")}
            value={Title}
            onChange={({ target }) => setTitle(target.value)}
          />
          <AreaField
            label={t.access.keyText}
            hint={t.access.keyHint}
            required
            fault={fault("/PublicKey")}
            value={PublicKey}
            onChange={({ target }) => {
              setPublicKey(target.value);
              // The comment of the line is a good title.
              const [, , comment = ""] = target.value.trim().split(/\s+/);
              if (Title === "") setTitle(comment);
            }}
          />
        </>
      )}
    </FormDialog>
  );
}
