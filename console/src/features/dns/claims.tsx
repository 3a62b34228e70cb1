/** Claims of domain names that other projects have, and how far the proof of each is. */
import type { Claim } from "@brume/api/claim.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMayOwnDomains } from "../../data/data.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { State } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { ClaimDialog, claimTones } from "./claim.tsx";
import { useNameFilter } from "./namefilter.ts";

export function ClaimList({ button }: { button: ReactNode }) {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/dns" });
  const { claim } = useSearch({ from: "/dns" });
  const filter = useNameFilter(t.claims.noMatch);
  const { client } = useData();
  const mayOwn = useMayOwnDomains();
  const query = useQuery(queriesOf(client).claims());
  const [deleting, setDeleting] = useState<Claim | null>(null);
  const shown = query.data?.find(({ ID }) => String(ID) === claim);
  const columns = useMemo<Column<Claim>[]>(
    () => [
      {
        id: "name",
        name: t.domains.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: ({ ID, Name }) => (
          <Link to="/dns" search={{ tab: "claims", claim: String(ID) }} className="whole">
            {Name}
          </Link>
        ),
      },
      {
        id: "state",
        name: t.common.state,
        width: "136px",
        isMain: true,
        cell: ({ State: state }) => <State tone={claimTones[state]}>{t.claims.states[state]}</State>,
      },
      {
        id: "detail",
        name: t.claims.detail,
        width: "minmax(180px, 3fr)",
        isBelow: true,
        cell: ({ Detail }) => (
          <span className="muted two-lines" title={t.errors.detail(Detail)}>
            {t.errors.detail(Detail)}
          </span>
        ),
      },
      timeColumn({
        id: "checked",
        name: t.claims.checked,
        format,
        timeOf: ({ DateCheck }) => DateCheck,
        none: t.common.never,
      }),
      timeColumn({
        id: "expires",
        name: t.claims.expires,
        format,
        timeOf: ({ State: state, DateExpire }) => (state === "Pending" ? DateExpire : null),
      }),
      ...(mayOwn
        ? [
            rowButton<Claim>({
              name: t.common.delete,
              icon: "trash",
              labelOf: ({ Name }) => t.claims.delete(Name),
              onPress: setDeleting,
            }),
          ]
        : []),
    ],
    [t, format, mayOwn],
  );
  const without = (before: object) => Object.fromEntries(Object.entries(before).filter(([name]) => name !== "claim"));
  const close = (): void => void go({ search: without, replace: true });
  return (
    <>
      <p className="muted">{t.claims.about}</p>
      <ObjectList
        label={t.domains.tabs.claims}
        query={query}
        columns={columns}
        idOf={({ ID }) => ID}
        nameOf={({ Name }) => Name}
        filter={filter}
        empty={
          <Empty icon="dns" title={t.claims.emptyTitle} action={button} command="brume claim create example.com">
            {t.claims.emptyAbout}
          </Empty>
        }
      />
      {shown && <ClaimDialog claim={shown} onDelete={() => setDeleting(shown)} onClose={close} />}
      {deleting !== null && (
        <ConfirmRequest
          title={t.claims.delete(deleting.Name)}
          action={deleting.State === "Pending" ? t.claims.cancel : t.common.delete}
          request={{ operation: "deleteClaim", path: { id: deleting.ID } }}
          send={() => client.deleteClaim({ path: { id: deleting.ID } })}
          done={() => t.access.deleted(deleting.Name)}
          onDone={close}
          onClose={() => setDeleting(null)}
        >
          <p>{deleting.State === "Pending" ? t.claims.deleteAbout : t.claims.deleteEndedAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}
