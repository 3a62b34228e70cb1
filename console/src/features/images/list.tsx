/** Images: what servers are created from, the images of the project, and backups. A fetch or an import shows its progress. */
import type { Image } from "@brume/api/catalog.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMay } from "../../data/data.tsx";
import { imageName } from "../../data/image.ts";
import { labelTexts } from "../../data/label.ts";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { None, PageHead, State, type Tone } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { CreateImage } from "./create.tsx";
import { ImageProgress } from "./progress.tsx";

const tones: Readonly<Record<Image["State"], Tone>> = {
  Active: "good",
  Available: "quiet",
  New: "busy",
  Uploading: "busy",
  Failed: "bad",
};

const textsOf = ({ Name, DisplayName, OperatingSystemType, Labels }: Image): string[] => [
  Name,
  DisplayName,
  OperatingSystemType,
  ...labelTexts(Labels),
];

export function ImageList() {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/images" });
  const { q = "", label = "", create } = useSearch({ from: "/images" });
  const mayWrite = useMay("server:write");
  const { client } = useData();
  const query = useQuery(queriesOf(client).images());
  const images = query.data;
  const [deleting, setDeleting] = useState<Image | null>(null);
  const { data: servers, isFetching } = useQuery(queriesOf(client).servers());
  const columns = useMemo<Column<Image>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(150px, 2fr)",
        isMain: true,
        cell: (image) => <strong title={image.Name}>{imageName(image)}</strong>,
      },
      {
        id: "state",
        name: t.common.state,
        width: "minmax(128px, 1fr)",
        isMain: true,
        cell: ({ State: state }) => <State tone={tones[state]}>{t.images.states[state]}</State>,
      },
      { id: "type", name: t.images.type, width: "minmax(130px, 1fr)", cell: ({ Type }) => t.images.types[Type] },
      {
        id: "system",
        name: t.images.system,
        width: "minmax(100px, 1fr)",
        cell: ({ OperatingSystemType }) => OperatingSystemType,
      },
      {
        id: "needs",
        name: t.images.needs,
        width: "minmax(150px, 1fr)",
        isBelow: true,
        isNamed: true,
        cell: ({ MinRAM, Hdd }) => (
          <span className="number">{`${format.megabytes(MinRAM)} · ${format.megabytes(Hdd * 1024)}`}</span>
        ),
      },
      {
        id: "server",
        name: t.images.from,
        width: "minmax(90px, 1fr)",
        cell: ({ ServerID }) => {
          if (ServerID === null) return <None />;
          const name = servers?.find(({ ID }) => ID === ServerID)?.Name;
          // The first page of many servers is shown while the others are read.
          if (servers !== undefined && name === undefined && !isFetching)
            return <span className="muted">{t.images.deleted}</span>;
          return (
            <Link to="/servers/$id" params={{ id: String(ServerID) }}>
              {name ?? t.images.server(ServerID)}
            </Link>
          );
        },
      },
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
      ...(mayWrite
        ? [
            rowButton<Image>({
              name: t.common.delete,
              icon: "trash",
              labelOf: (image) => t.images.delete(imageName(image)),
              isAbsent: ({ Type }) => Type === "GoldServer",
              onPress: setDeleting,
            }),
          ]
        : []),
    ],
    [t, format, mayWrite, servers, isFetching],
  );
  const setCreating = (is: boolean): void => {
    void go({ search: { ...(q !== "" && { q }), ...(is && { create: "1" }) }, replace: true });
  };
  return (
    <>
      <PageHead title={t.images.title} count={images && format.number(images.length)} about={t.images.about}>
        {mayWrite && (
          <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
            {t.images.create}
          </Button>
        )}
      </PageHead>
      <ImageProgress images={images ?? []} />
      <ObjectList
        label={t.images.title}
        query={query}
        columns={columns}
        idOf={({ ID }) => ID}
        nameOf={imageName}
        filter={{
          name: t.images.filter,
          q,
          label,
          textsOf,
          onChange: (part) => void go({ search: (before) => ({ ...before, ...part }), replace: true }),
          noMatch: t.images.noMatch,
        }}
        empty={
          <Empty icon="image" title={t.images.emptyTitle} command="brume image create golden --server web-1">
            {t.images.emptyAbout}
          </Empty>
        }
      />
      {create !== undefined && mayWrite && <CreateImage onClose={() => setCreating(false)} />}
      {deleting !== null && (
        <ConfirmRequest
          title={t.images.delete(imageName(deleting))}
          action={t.common.delete}
          typed={imageName(deleting)}
          request={{ operation: "deleteImage", path: { id: deleting.ID } }}
          send={() => client.deleteImage({ path: { id: deleting.ID } })}
          done={() => t.access.deleted(imageName(deleting))}
          onClose={() => setDeleting(null)}
        >
          <p>{t.images.deleteAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}
