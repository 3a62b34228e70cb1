/** What the list shows of a group of servers, and its deletion as a whole. */
import type { Server } from "@brume/api/server.ts";
import { useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMay } from "../../data/data.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";

interface GroupProps {
  readonly id: string;
  readonly servers: readonly Server[];
  readonly onDeleted: () => void;
}

export function Group({ id, servers, onDeleted }: GroupProps) {
  const t = useTexts();
  const { client } = useData();
  const mayWrite = useMay("server:write");
  const [isDeleting, setDeleting] = useState(false);
  const count = servers.filter(({ BatchID }) => String(BatchID) === id).length;
  const body = { ID: Number(id) };
  return (
    <>
      <span className="tag">{t.servers.group(id)}</span>
      {mayWrite && count > 0 && (
        <Button icon="trash" onClick={() => setDeleting(true)}>
          {t.servers.deleteGroup}
        </Button>
      )}
      {isDeleting && (
        <ConfirmRequest
          title={t.servers.bulk.titles.Delete(count)}
          action={t.common.delete}
          typed={t.servers.bulk.word}
          request={{ operation: "deleteBatch", body }}
          send={() => client.deleteBatch({ body })}
          done={() => t.servers.groupDeleted(id)}
          onDone={onDeleted}
          onClose={() => setDeleting(false)}
        >
          <p>{t.servers.deleteGroupAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}
