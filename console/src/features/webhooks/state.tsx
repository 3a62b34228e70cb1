/** The state of a webhook, also while its endpoint fails and the service repeats deliveries, and the last error in a table. */
import type { Webhook } from "@brume/api/webhook.ts";
import { useTexts } from "../../texts/texts.tsx";
import { None, State } from "../../ui/page.tsx";

export function WebhookState({ webhook }: { webhook: Webhook }) {
  const t = useTexts();
  if (webhook.State === "Active" && webhook.FailingSince !== null)
    return <State tone="warn">{t.webhooks.failing}</State>;
  return <State tone={webhook.State === "Active" ? "good" : "bad"}>{t.webhooks.states[webhook.State]}</State>;
}

/** Why the last delivery failed; null: it did not. */
export function LastError({ failure }: { failure: string | null }) {
  const t = useTexts();
  if (failure === null) return <None />;
  const text = t.errors.detail(failure);
  return (
    <span className="muted two-lines" title={text}>
      {text}
    </span>
  );
}
