/** The state of a webhook, also while its endpoint fails and the service repeats deliveries. */
import type { Webhook } from "@brume/api/webhook.ts";
import { useTexts } from "../../texts/texts.tsx";
import { State } from "../../ui/page.tsx";

export function WebhookState({ webhook }: { webhook: Webhook }) {
  const t = useTexts();
  if (webhook.State === "Active" && webhook.FailingSince !== null)
    return <State tone="warn">{t.webhooks.failing}</State>;
  return <State tone={webhook.State === "Active" ? "good" : "bad"}>{t.webhooks.states[webhook.State]}</State>;
}
