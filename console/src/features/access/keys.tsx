/** SSH keys, which a server gets when it is created. */
import type { SshKey } from "@brume/api/catalog.ts";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { AddKey } from "../../data/addkey.tsx";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMay } from "../../data/data.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { HeadAction } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";

export function Keys() {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const mayWrite = useMay("server:write");
  const query = useQuery(queriesOf(client).sshKeys());
  const go = useNavigate({ from: "/access" });
  const { create } = useSearch({ from: "/access" });
  const setAdding = (is: boolean): void => {
    void go({ search: { tab: "keys", ...(is && { create: "1" }) }, replace: true });
  };
  const [deleting, setDeleting] = useState<SshKey | null>(null);
  const columns = useMemo<Column<SshKey>[]>(
    () => [
      {
        id: "title",
        name: t.common.name,
        width: "minmax(120px, 1fr)",
        isMain: true,
        cell: ({ Title }) => <strong>{Title}</strong>,
      },
      { id: "type", name: t.access.keyType, width: "130px", cell: ({ Type }) => t.access.keyTypes[Type] },
      {
        id: "fingerprint",
        name: t.access.fingerprint,
        width: "minmax(180px, 2fr)",
        isBelow: true,
        isMain: true,
        cell: ({ Fingerprint }) => <span className="mono">{Fingerprint}</span>,
      },
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
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
  return (
    <>
      {mayWrite && (
        <HeadAction>
          <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
            {t.access.addKey}
          </Button>
        </HeadAction>
      )}
      <p className="muted">{t.access.keysAbout}</p>
      <ObjectList
        label={t.access.tabs.keys}
        columns={columns}
        query={query}
        idOf={({ ID }) => ID}
        nameOf={({ Title }) => Title}
        empty={
          <Empty
            icon="access"
            title={t.access.keysEmpty}
            command="brume ssh-key create laptop --public-key @~/.ssh/id_ed25519.pub"
          >
            {t.access.keysEmptyAbout}
          </Empty>
        }
      />
      {create !== undefined && mayWrite && <AddKey onClose={() => setAdding(false)} />}
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
