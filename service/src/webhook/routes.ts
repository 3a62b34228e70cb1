/** Route handlers for webhooks (list, read, create, delete) and their deliveries (list, resend). */
import { maxId } from "@brume/api/common.ts";
import { webhookLimits } from "@brume/api/webhook.ts";
import { requireQuota } from "../account/model/rules.ts";
import { findProject, lockProject } from "../account/table.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import type { Sealer } from "../base/secret.ts";
import type { Sender } from "../drivers/webhook/interface.ts";
import { newestEventId } from "../engine/eventquery.ts";
import type { Reconciler } from "../engine/flow.ts";
import { requestReconcile } from "../engine/task.ts";
import { afterPreparing, type Handlers } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import { stateMatcher } from "../http/read/selector.ts";
import type { Reader } from "../store/db.ts";
import { checkWebhook, everyType } from "./model/rules.ts";
import { showDelivery, showWebhook, webhookTag } from "./model/show.ts";
import * as table from "./table.ts";

type Names = "listWebhooks" | "createWebhook" | "readWebhook" | "deleteWebhook" | "listDeliveries" | "resendDelivery";

/** Dependencies of the webhook route handlers. */
export interface WebhookContext {
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly sender: Sender;
  readonly randomBytes: (bytes: number) => Uint8Array;
  /** Delivers the events. */
  readonly reconciler: Reconciler;
  /** Notifies the worker that rows of this webhook have changed. */
  readonly wake: (webhook: number) => void;
}

const secretBytes = 32;

async function getWebhook(db: Reader, project: number, id: number): Promise<table.WebhookRow> {
  const row = await table.findWebhook(db, project, id);
  if (row === undefined) throw new ApiError("webhook_not_found", `There is no webhook ${id} in this project.`);
  return row;
}

export function webhookRoutes(context: WebhookContext): Handlers<Names> {
  const { clock, sealer, sender, reconciler } = context;
  const wakeAfterCommit = (webhook: number) => async (): Promise<undefined> => {
    context.wake(webhook);
    return undefined;
  };

  return {
    listWebhooks: {
      async list({ query, caller }, db) {
        const page = takePage(await table.listWebhooks(db, caller.projectId), query, {
          id: (row) => row.id,
          state: (row) => row.state,
          labels: (row) => JSON.parse(row.labels) as Record<string, string>,
        });
        return { ...page, items: page.items.map((row) => showWebhook(row)) };
      },
    },
    readWebhook: {
      async read({ params, caller }, db) {
        const row = await getWebhook(db, caller.projectId, params.id);
        return { answer: showWebhook(row), tag: webhookTag(row) };
      },
    },
    createWebhook: afterPreparing({
      check: checkWebhook,
      prepare: ({ body }) => sender.judge(body.Url),
      async change({ body, caller, dryRun }, tx, refusal) {
        if (refusal !== null) throw invalidFields([fieldError("/Url", "value_not_allowed", `Url ${refusal}.`)]);
        await lockProject(tx, caller.projectId);
        const project = await findProject.first(tx, { id: caller.projectId });
        if (project === undefined) throw new ApiError("token_invalid", "The project of the token has been deleted.");
        requireQuota(project.quotas, "Webhooks", await table.countWebhooks(tx, caller.projectId), 1);
        const secret = body.Secret ?? Buffer.from(context.randomBytes(secretBytes)).toString("hex");
        const row = await table.insertWebhook(tx, {
          project_id: caller.projectId,
          url: body.Url,
          types: JSON.stringify(body.Types ?? [everyType]),
          secret: sealer.seal(secret),
          state: "Active",
          cursor: await newestEventId(tx),
          failing_since: null,
          error: null,
          created: clock.now(),
          labels: JSON.stringify(body.Labels ?? {}),
          version: 1,
        });
        await requestReconcile(tx, reconciler, 0);
        const shown = dryRun ? { ...row, id: 0 } : row;
        const after = showWebhook(shown);
        return {
          answer: { ...after, Secret: dryRun || body.Secret !== undefined ? "" : secret },
          tag: webhookTag(shown),
          changes: [{ type: "webhook.created", id: row.id, parent: null, before: null, after }],
          refresh: wakeAfterCommit(row.id),
        };
      },
    }),
    deleteWebhook: {
      async change({ params, caller, expect }, tx) {
        await lockProject(tx, caller.projectId);
        const row = await getWebhook(tx, caller.projectId, params.id);
        expect(webhookTag(row));
        await table.deleteWebhook(tx, row.id);
        return {
          answer: undefined,
          changes: [{ type: "webhook.deleted", id: row.id, parent: null, before: showWebhook(row), after: null }],
          refresh: wakeAfterCommit(row.id),
        };
      },
    },
    listDeliveries: {
      async list({ params, query, caller }, db) {
        const { id } = await getWebhook(db, caller.projectId, params.id);
        const isType = query.type === undefined ? () => true : stateMatcher(query.type);
        const rows = await table.listDeliveries(db, id, webhookLimits.shown);
        // `takePage` sorts by ascending id; the newest delivery must come first.
        const page = takePage(
          rows.filter(({ type }) => isType(type)),
          query,
          { id: (row) => maxId - row.id, state: (row) => row.state },
        );
        return { ...page, items: page.items.map(showDelivery) };
      },
    },
    resendDelivery: {
      async change({ params, caller, expect }, tx) {
        await lockProject(tx, caller.projectId);
        const webhook = await getWebhook(tx, caller.projectId, params.id);
        expect(webhookTag(webhook));
        const row = await table.findDelivery(tx, webhook.id, params.deliveryID);
        if (row === undefined)
          throw new ApiError("delivery_not_found", `Webhook ${webhook.id} has no delivery ${params.deliveryID}.`);
        if ((await table.findEvent.first(tx, { id: row.event_id })) === undefined)
          throw new ApiError(
            "action_not_allowed",
            `Event ${row.event_id} has been deleted, so delivery ${row.id} cannot be sent again.`,
          );
        // A delivery that waits in the queue of its resource is only tried earlier. A failed webhook has no queue.
        const isResend = row.due === null || webhook.state === "Failed";
        const change = {
          state: "Waiting",
          due: clock.now(),
          ended: null,
          is_resend: isResend ? 1 : row.is_resend,
        } as const;
        await table.updateDelivery(tx, row.id, change);
        await requestReconcile(tx, reconciler, 0);
        return { answer: showDelivery({ ...row, ...change }), changes: [], refresh: wakeAfterCommit(webhook.id) };
      },
    },
  };
}
