/** One webhook: its state, and the last deliveries with their results. A failed one can be sent again. */
import { type Delivery, deliveryStates } from "@brume/api/webhook.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useChange } from "../../data/change.ts";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { Missing } from "../../data/missing.tsx";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, ErrorBox, Note, Skeleton } from "../../ui/feedback.tsx";
import { SelectFilter } from "../../ui/filters.tsx";
import { None, PageHead, State, type Tone } from "../../ui/page.tsx";
import { Removal } from "../../ui/removal.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { LastError, WebhookState } from "./state.tsx";

const tones: Readonly<Record<Delivery["State"], Tone>> = { Waiting: "busy", Delivered: "good", Failed: "bad" };

export function WebhookDetail() {
  const t = useTexts();
  const go = useNavigate();
  const id = Number(useParams({ from: "/activity/webhooks/$id" }).id);
  const { client } = useData();
  const { data: webhook, error, refetch } = useQuery(queriesOf(client).webhook(id));
  const crumb = <Link to="/activity/webhooks">{t.activity.tabs.webhooks}</Link>;
  if (error && webhook === undefined)
    return (
      <Missing
        error={error}
        onRetry={() => void refetch()}
        icon="webhook"
        title={t.webhooks.notFound}
        list={{ to: "/activity/webhooks" }}
        name={t.activity.tabs.webhooks}
      />
    );
  if (webhook === undefined) return <Skeleton lines={8} />;
  const { Url, Types, Error: failure } = webhook;
  return (
    <>
      <PageHead
        crumb={crumb}
        title={
          <>
            <span className="break">{Url}</span>
            <WebhookState webhook={webhook} />
          </>
        }
        about={Types.join(", ")}
      />
      <div className="stack">
        {failure !== null && (
          <Note kind="warn">
            <p className="break">{t.errors.detail(failure)}</p>
            {webhook.State === "Failed" && <p>{t.webhooks.failedAbout}</p>}
          </Note>
        )}
        <Deliveries id={id} />
        <Removal
          title={t.webhooks.deleteTitle}
          about={t.webhooks.deleteAbout}
          dialog={(onClose) => (
            <ConfirmRequest
              title={t.webhooks.deleteTitle}
              action={t.common.delete}
              request={{ operation: "deleteWebhook", path: { id } }}
              send={() => client.deleteWebhook({ path: { id } })}
              done={() => t.access.deleted(Url)}
              onDone={() => void go({ to: "/activity/webhooks" })}
              onClose={onClose}
            >
              <p className="break">{Url}</p>
              <p>{t.webhooks.deleteAbout}</p>
            </ConfirmRequest>
          )}
        />
      </div>
    </>
  );
}

function Deliveries({ id }: { id: number }) {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/activity/webhooks/$id" });
  const { state = "" } = useSearch({ from: "/activity/webhooks/$id" });
  const { client, queries } = useData();
  const { data, error, refetch } = useQuery(queriesOf(client).deliveries(id));
  const resend = useChange(({ ID }: Delivery) => client.resendDelivery({ path: { id, deliveryID: ID } }), {
    done: ({ EventID }) => t.webhooks.resent(EventID),
    onDone: () => void queries.invalidateQueries({ queryKey: ["delivery", id] }),
  });
  const { run } = resend;
  const columns = useMemo<Column<Delivery>[]>(
    () => [
      {
        id: "event",
        name: t.webhooks.event,
        width: "minmax(150px, 1fr)",
        isMain: true,
        cell: ({ Type, ResourceID }) => (
          <>
            <code>{Type}</code> <span className="muted number">{ResourceID}</span>
          </>
        ),
      },
      {
        id: "state",
        name: t.common.state,
        width: "130px",
        isMain: true,
        cell: ({ State: one }) => <State tone={tones[one]}>{t.webhooks.deliveryStates[one]}</State>,
      },
      {
        id: "status",
        name: "HTTP",
        width: "60px",
        isBelow: true,
        isNamed: true,
        isAbsent: ({ Status }) => Status === null,
        cell: ({ Status }) => Status ?? <None />,
      },
      {
        id: "attempts",
        name: t.webhooks.attempts,
        width: "80px",
        isRight: true,
        cell: ({ Attempts }) => format.number(Attempts),
      },
      {
        id: "error",
        name: t.webhooks.error,
        width: "minmax(140px, 3fr)",
        isBelow: true,
        isAbsent: ({ Error: failure }) => failure === null,
        cell: ({ Error: failure }) => <LastError failure={failure} />,
      },
      timeColumn({ id: "next", name: t.webhooks.next, format, timeOf: ({ NextDate }) => NextDate }),
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
      rowButton<Delivery>({
        name: t.webhooks.resend,
        icon: "refresh",
        labelOf: ({ Type, ID }) => `${t.webhooks.resend}: ${Type} ${ID}`,
        onPress: (delivery) => void run(delivery).catch(() => undefined),
      }),
    ],
    [t, format, run],
  );
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton />;
  const rows = data.filter((delivery) => state === "" || delivery.State === state);
  const [newest] = rows;
  return (
    <div className="stack">
      <div className="filters">
        <h2 className="grow">{t.webhooks.deliveries}</h2>
        <SelectFilter
          label={t.common.state}
          any={t.servers.anyState}
          value={state}
          options={deliveryStates.map((name) => [name, t.webhooks.deliveryStates[name]])}
          onChange={(next) => void go({ search: { state: next }, replace: true })}
        />
      </div>
      <DataTable
        label={t.webhooks.deliveries}
        columns={columns}
        rows={rows}
        idOf={({ ID }) => ID}
        nameOf={({ Type }) => Type}
        empty={<Empty icon="webhook" title={t.webhooks.noDeliveries} />}
      />
      {newest && (
        <RequestPanel
          title={`${t.create.request}: ${t.webhooks.resend}`}
          request={{ operation: "resendDelivery", path: { id, deliveryID: newest.ID } }}
        />
      )}
    </div>
  );
}
