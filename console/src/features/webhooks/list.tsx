/** Webhooks: endpoints that receive the events of the project. */
import type { Webhook } from "@brume/api/webhook.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useData } from "../../data/data.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { Tags } from "../../ui/filters.tsx";
import { HeadAction } from "../../ui/page.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { CreateWebhook } from "./create.tsx";
import { LastError, WebhookState } from "./state.tsx";

export function WebhookList() {
  const t = useTexts();
  const format = useFormat();
  const query = useQuery(queriesOf(useData().client).webhooks());
  const [isCreating, setCreating] = useState(false);
  const columns = useMemo<Column<Webhook>[]>(
    () => [
      {
        id: "url",
        name: t.webhooks.url,
        width: "minmax(160px, 2fr)",
        isMain: true,
        cell: ({ ID, Url }) => (
          <Link to="/activity/webhooks/$id" params={{ id: String(ID) }} className="whole">
            {Url}
          </Link>
        ),
      },
      {
        id: "state",
        name: t.common.state,
        width: "120px",
        isMain: true,
        cell: (webhook) => <WebhookState webhook={webhook} />,
      },
      {
        id: "types",
        name: t.webhooks.types,
        width: "minmax(110px, 1fr)",
        isBelow: true,
        cell: ({ Types }) => <Tags texts={Types} />,
      },
      {
        id: "error",
        name: t.webhooks.error,
        width: "minmax(170px, 3fr)",
        cell: ({ Error: failure }) => <LastError failure={failure} />,
      },
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
    ],
    [t, format],
  );
  const button = (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      {t.webhooks.create}
    </Button>
  );
  return (
    <>
      <HeadAction>{button}</HeadAction>
      <p className="muted">{t.webhooks.about}</p>
      <ObjectList
        label={t.activity.tabs.webhooks}
        query={query}
        columns={columns}
        idOf={({ ID }) => ID}
        nameOf={({ Url }) => Url}
        empty={
          <Empty
            icon="webhook"
            title={t.webhooks.emptyTitle}
            command="brume webhook create https://example.com/hook"
            action={button}
          >
            {t.webhooks.emptyAbout}
          </Empty>
        }
      />
      {isCreating && <CreateWebhook onClose={() => setCreating(false)} />}
    </>
  );
}
