/** The backup of the installation, and the disk copies that it uses: one of a server of any project, and the removal of all. */
import { useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/feedback.tsx";
import { TextField } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";

export function Backup() {
  const t = useTexts();
  const { client } = useData();
  const [open, setOpen] = useState<"copy" | "delete" | null>(null);
  const [folders, setFolders] = useState<readonly string[]>([]);
  const close = (): void => setOpen(null);
  return (
    <Panel title={t.host.backup}>
      <div className="stack">
        <p className="muted">{t.host.backupAbout}</p>
        <p className="muted small">{t.host.backupPackage}</p>
        <Code text="brume-admin backup /var/backups/brume --with-disks" />
        <p className="muted small">{t.host.backupClone}</p>
        <Code text="npm run backup -- /var/backups/brume --with-disks" />
        <p className="muted">{t.host.copiesAbout}</p>
        {folders.map((folder) => (
          <Code key={folder} text={folder} />
        ))}
        <div className="line">
          <Button icon="copy" onClick={() => setOpen("copy")}>
            {t.host.copyDisks}
          </Button>
          <Button icon="trash" onClick={() => setOpen("delete")}>
            {t.host.deleteCopies}
          </Button>
        </div>
      </div>
      {open === "copy" && <CopyDisks onFolder={(folder) => setFolders((all) => [...all, folder])} onClose={close} />}
      {open === "delete" && (
        <ConfirmRequest
          title={t.host.deleteCopies}
          action={t.common.delete}
          request={{ operation: "deleteDiskCopies" }}
          send={() => client.deleteDiskCopies()}
          done={() => t.host.copiesDeleted}
          onDone={() => setFolders([])}
          onClose={close}
        >
          <p>{t.host.deleteCopiesAbout}</p>
        </ConfirmRequest>
      )}
    </Panel>
  );
}

interface CopyProps {
  /** Receives the folder of the copy. */
  readonly onFolder: (folder: string) => void;
  readonly onClose: () => void;
}

function CopyDisks({ onFolder, onClose }: CopyProps) {
  const t = useTexts();
  const { client } = useData();
  const [server, setServer] = useState("");
  const body = { ServerID: Number(server) };
  return (
    <FormDialog
      title={t.host.copyDisks}
      about={t.host.copyAbout}
      action={t.host.copyDisks}
      request={{ operation: "createDiskCopy", body }}
      isComplete={server !== ""}
      send={(options) => client.createDiskCopy({ body }, options)}
      done={({ Folder }) => (Folder === null ? t.host.copiedSimulated : t.host.copied)}
      onDone={({ Folder }) => {
        if (Folder !== null) onFolder(Folder);
        onClose();
      }}
      onClose={onClose}
    >
      {(error) => (
        <TextField
          label={t.host.serverId}
          type="number"
          min={1}
          required
          error={error("/ServerID")}
          value={server}
          onChange={({ target }) => setServer(target.value)}
        />
      )}
    </FormDialog>
  );
}
