/** Actions on the selected servers. Servers for which the action is not possible now are left out. */
import type { RequestType } from "@brume/api/action.ts";
import type { Server } from "@brume/api/server.ts";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { whyNot } from "../../data/serverview.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import type { IconName } from "../../ui/icon.tsx";
import { useToast } from "../../ui/toast.tsx";

const types = [
  ["PowerOn", "play"],
  ["ShutDownGuestOS", "power"],
  ["PowerReboot", "refresh"],
] as const satisfies readonly (readonly [RequestType, IconName])[];

/** Requests that run at the same time. */
const atOnce = 6;

/** Runs `work` for each item, a few at the same time. Returns the errors. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<unknown[]> {
  const errors: unknown[] = [];
  const rest = [...items];
  const worker = async (): Promise<void> => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) {
      try {
        await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return errors;
}

export function BulkBar({ servers, onClear }: { servers: readonly Server[]; onClear: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const toast = useToast();
  const [isBusy, setBusy] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  if (servers.length === 0 && !isDeleting) return null;

  async function run(able: readonly Server[], work: (server: Server) => Promise<unknown>): Promise<void> {
    setBusy(true);
    const errors = await forEach(able, work);
    setBusy(false);
    if (able.length > errors.length) toast({ kind: "good", text: t.servers.bulk.done(able.length - errors.length) });
    if (errors.length > 0)
      toast({ kind: "bad", text: t.servers.bulk.failed(errors.length), detail: troubleOf(errors[0], t).cause });
  }
  const able = (type: RequestType | "Delete") => servers.filter((server) => whyNot(server, type, t) === undefined);

  return (
    <div className="bulk" role="toolbar" aria-label={t.table.selected(servers.length)}>
      <strong className="number">{t.table.selected(servers.length)}</strong>
      {types.map(([type, icon]) => (
        <Button
          key={type}
          size="small"
          icon={icon}
          isBusy={isBusy}
          disabled={able(type).length === 0}
          onClick={() =>
            void run(able(type), ({ ID }) => client.startAction({ path: { id: ID }, body: { Type: type } }))
          }
        >
          {t.servers.bulk[type]}
        </Button>
      ))}
      <Button
        size="small"
        kind="danger"
        icon="trash"
        isBusy={isBusy}
        disabled={able("Delete").length === 0}
        onClick={() => setDeleting(true)}
      >
        {t.servers.bulk.delete}
      </Button>
      <Button size="small" kind="quiet" icon="close" aria-label={t.table.clear} onClick={onClear} />
      {isDeleting && (
        <Confirm
          title={t.servers.bulk.deleteTitle(able("Delete").length)}
          action={t.common.delete}
          typed={t.servers.bulk.word}
          onConfirm={() => run(able("Delete"), ({ ID }) => client.deleteServer({ path: { id: ID } })).then(onClear)}
          onClose={() => setDeleting(false)}
        >
          <p>{t.servers.bulk.deleteAbout}</p>
          <p className="muted break">
            {able("Delete")
              .map(({ Name }) => Name)
              .join(", ")}
          </p>
        </Confirm>
      )}
    </div>
  );
}
