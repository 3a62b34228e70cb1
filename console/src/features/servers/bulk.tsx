/** Actions on the selected servers. Each opens a dialog that shows the requests, and then how far each server is. */
import type { Server } from "@brume/api/server.ts";
import { useState } from "react";
import { whyNot } from "../../data/whynot.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { IconName } from "../../ui/icon.tsx";
import { BulkDialog, type BulkKind } from "./bulkdialog.tsx";

const kinds = [
  ["PowerOn", "play"],
  ["ShutDownGuestOS", "power"],
  ["PowerReboot", "bolt"],
  ["Labels", "edit"],
  ["Delete", "trash"],
] as const satisfies readonly (readonly [BulkKind, IconName])[];

export function BulkBar({ servers, onClear }: { servers: readonly Server[]; onClear: () => void }) {
  const t = useTexts();
  const [open, setOpen] = useState<{ readonly kind: BulkKind; readonly servers: readonly Server[] } | null>(null);
  const isAble = (kind: BulkKind): boolean =>
    kind === "Labels" || servers.some((server) => whyNot(server, kind, t) === undefined);
  return (
    <>
      {servers.length > 0 && (
        <div className="bulk" role="toolbar" aria-label={t.table.selected(servers.length)}>
          <strong className="number">{t.table.selected(servers.length)}</strong>
          {kinds.map(([kind, icon]) => (
            <Button
              key={kind}
              size="small"
              icon={icon}
              kind={kind === "Delete" ? "danger" : undefined}
              disabled={!isAble(kind)}
              onClick={() => setOpen({ kind, servers })}
            >
              {kind === "Delete" ? t.common.delete : t.servers.bulk[kind]}
            </Button>
          ))}
          <Button size="small" kind="quiet" icon="close" aria-label={t.table.clear} onClick={onClear} />
        </div>
      )}
      {open !== null && <BulkDialog {...open} onDone={onClear} onClose={() => setOpen(null)} />}
    </>
  );
}
