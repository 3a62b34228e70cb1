/** The tokens of the project. */
import type { Token } from "@brume/api/token.ts";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useAccount, useData, useMay } from "../../data/data.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { SelectFilter, Tags } from "../../ui/filters.tsx";
import { HeadAction, None } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { CreateToken } from "./createtoken.tsx";

export function Tokens() {
  const t = useTexts();
  const format = useFormat();
  const { client, queries } = useData();
  const go = useNavigate({ from: "/access" });
  const { ID: own, ProjectID: ownProject } = useAccount()?.Token ?? {};
  const { project = "" } = useSearch({ from: "/access" });
  const projects = useQuery(queriesOf(client).projects()).data?.Projects ?? [];
  const query = useQuery({
    ...queriesOf(client).tokens(/^\d+$/.test(project) ? Number(project) : undefined),
    // Events contain no use of a token.
    staleTime: 0,
  });
  const mayDns = useMay("dns:read");
  const isRestricted = query.data?.some(({ DomainID }) => DomainID !== null) === true;
  const domains = useQuery({ ...queriesOf(client).domains(), enabled: mayDns && isRestricted }).data;
  const [isCreating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState<Token | null>(null);
  const columns = useMemo<Column<Token>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(140px, 1fr)",
        isMain: true,
        cell: ({ Name }) => <strong>{Name}</strong>,
      },
      {
        id: "scopes",
        name: t.access.scopes,
        width: "minmax(180px, 2fr)",
        isBelow: true,
        cell: ({ Scopes }) => <Tags texts={Scopes} />,
      },
      {
        id: "restriction",
        name: t.access.restriction,
        width: "minmax(110px, 1.6fr)",
        isBelow: true,
        isNamed: true,
        isAbsent: ({ DomainID }) => DomainID === null,
        cell: ({ DomainID, RecordPattern, RecordTypes, ProjectID }) => {
          if (DomainID === null) return <None />;
          const name = domains?.find(({ ID }) => ID === DomainID)?.Name;
          const isDeleted = name === undefined && domains !== undefined && ProjectID === ownProject;
          const domain = isDeleted ? t.access.deletedDomain : (name ?? `${t.access.domain} ${DomainID}`);
          const text = [domain, RecordPattern ?? [], RecordTypes ?? []].flat().join(", ");
          return <span title={text}>{text}</span>;
        },
      },
      {
        id: "used",
        name: t.access.lastUsed,
        width: "130px",
        isMain: true,
        cell: ({ LastUsedAt }) => (
          <span className="muted">{LastUsedAt === null ? t.common.never : format.ago(LastUsedAt)}</span>
        ),
      },
      {
        id: "expires",
        name: t.access.expires,
        width: "120px",
        cell: ({ ExpiresAt }) => (
          <span className="muted">{ExpiresAt === null ? t.common.never : format.date(ExpiresAt)}</span>
        ),
      },
      rowButton<Token>({
        name: t.common.delete,
        icon: "trash",
        labelOf: ({ Name }) => t.access.deleteToken(Name),
        isAbsent: ({ ID }) => ID === own,
        onPress: setDeleting,
      }),
    ],
    [t, format, own, ownProject, domains],
  );
  return (
    <>
      <HeadAction>
        <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
          {t.access.createToken}
        </Button>
      </HeadAction>
      <p className="muted">{t.access.tokensAbout}</p>
      {projects.length > 1 && (
        <div className="filters">
          <SelectFilter
            label={t.access.project}
            any={t.access.ownProject}
            value={project}
            options={projects.filter(({ ID }) => ID !== ownProject).map(({ ID, Name }) => [String(ID), Name])}
            onChange={(next) => void go({ search: (all) => ({ ...all, project: next }), replace: true })}
          />
        </div>
      )}
      <ObjectList
        label={t.access.tabs.tokens}
        columns={columns}
        query={query}
        idOf={({ ID }) => ID}
        nameOf={({ Name }) => Name}
      />
      {isCreating && <CreateToken onClose={() => setCreating(false)} />}
      {deleting !== null && (
        <ConfirmRequest
          title={t.access.deleteToken(deleting.Name)}
          action={t.common.delete}
          typed={deleting.Name}
          request={{ operation: "deleteToken", path: { id: deleting.ID } }}
          send={() => client.deleteToken({ path: { id: deleting.ID } })}
          done={() => t.access.deleted(deleting.Name)}
          // There are no events of other projects.
          onDone={() => void queries.invalidateQueries({ queryKey: ["token"] })}
          onClose={() => setDeleting(null)}
        >
          <p>{t.access.deleteTokenAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}
