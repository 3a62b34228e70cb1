/** Webhooks: endpoints that receive the events of the project. */
import type { Webhook } from "@brume/api/webhook.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useData } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, Skeleton, TroubleBox } from "../../ui/feedback.tsx";
import { State } from "../../ui/page.tsx";
import { CreateWebhook } from "./create.tsx";

export function WebhookList() {
  const t = useTexts();
  const format = useFormat();
  const { data: webhooks, error, refetch } = useQuery(queriesOf(useData().client).webhooks());
  const [isCreating, setCreating] = useState(false);
  const columns = useMemo<Column<Webhook>[]>(
    () => [
      {
        id: "url",
        name: t.webhooks.url,
        width: "minmax(170px, 2fr)",
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
        cell: ({ State: state }) => (
          <State tone={state === "Active" ? "good" : "bad"}>{t.webhooks.states[state]}</State>
        ),
      },
      {
        id: "types",
        name: t.webhooks.types,
        width: "minmax(140px, 1fr)",
        isBelow: true,
        cell: ({ Types }) => (
          <span title={Types.join(", ")}>
            {Types.map((type) => (
              <span key={type} className="tag">
                {type}
              </span>
            ))}
          </span>
        ),
      },
      {
        id: "error",
        name: t.webhooks.error,
        width: "minmax(120px, 1fr)",
        cell: ({ Error: failure }) => <span className="muted">{failure ?? "–"}</span>,
      },
      {
        id: "created",
        name: t.common.created,
        width: "120px",
        cell: ({ DateCreate }) => <span className="muted">{format.ago(DateCreate)}</span>,
      },
    ],
    [t, format],
  );
  if (error) return <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />;
  const button = (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      {t.webhooks.create}
    </Button>
  );
  return (
    <>
      <div className="line apart">
        <p className="muted">{t.webhooks.about}</p>
        {webhooks !== undefined && webhooks.length > 0 && button}
      </div>
      {webhooks === undefined ? (
        <Skeleton />
      ) : webhooks.length === 0 ? (
        <Empty
          icon="webhook"
          title={t.webhooks.emptyTitle}
          command="brume webhook create https://example.com/hook"
          action={button}
        >
          {t.webhooks.emptyAbout}
        </Empty>
      ) : (
        <DataTable
          label={t.activity.tabs.webhooks}
          columns={columns}
          rows={webhooks}
          idOf={({ ID }) => ID}
          nameOf={({ Url }) => Url}
        />
      )}
      {isCreating && <CreateWebhook onClose={() => setCreating(false)} />}
    </>
  );
}
