/** The browsers that are signed in: of the own token, for administrators of all tokens of the project. */
import type { Session } from "@brume/api/session.ts";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { timeColumn } from "../../ui/timecolumn.tsx";

export function Sessions() {
  const t = useTexts();
  const format = useFormat();
  const { client, queries } = useData();
  const query = useQuery(queriesOf(client).sessions());
  const [ending, setEnding] = useState<Session | null>(null);
  const columns = useMemo<Column<Session>[]>(
    () => [
      {
        id: "name",
        name: t.access.browser,
        width: "minmax(140px, 1fr)",
        isMain: true,
        cell: ({ Name, ID, IsCurrent }) => (
          <>
            {Name || `#${ID}`} {IsCurrent && <span className="tag">{t.access.current}</span>}
          </>
        ),
      },
      {
        id: "token",
        name: t.activity.token,
        width: "minmax(100px, 1fr)",
        isBelow: true,
        isNamed: true,
        cell: ({ TokenName }) => TokenName,
      },
      {
        id: "address",
        name: t.access.address,
        width: "minmax(110px, 1fr)",
        isBelow: true,
        cell: ({ Address }) => <span className="mono">{Address}</span>,
      },
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
      timeColumn({ id: "expires", name: t.access.expires, format, timeOf: ({ ExpiresAt }) => ExpiresAt }),
      {
        id: "end",
        name: t.access.endSession,
        isNameHidden: true,
        width: "90px",
        isMain: true,
        isRight: true,
        cell: (session) =>
          session.IsCurrent ? null : (
            <Button size="small" onClick={() => setEnding(session)}>
              {t.access.endSession}
            </Button>
          ),
      },
    ],
    [t, format],
  );
  return (
    <>
      <p className="muted">{t.access.sessionsAbout}</p>
      <ObjectList
        label={t.access.tabs.sessions}
        columns={columns}
        query={query}
        idOf={({ ID }) => ID}
        nameOf={({ Name }) => Name}
      />
      {ending !== null && (
        <ConfirmRequest
          title={t.access.endTitle(ending.Name || `#${ending.ID}`)}
          action={t.access.endSession}
          request={{ operation: "deleteSession", path: { id: ending.ID } }}
          send={() => client.deleteSession({ path: { id: ending.ID } })}
          done={() => t.access.ended}
          // Tokens without account:admin receive no events of sessions.
          onDone={() => void queries.invalidateQueries({ queryKey: ["session"] })}
          onClose={() => setEnding(null)}
        >
          <p>{t.access.endAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}
