/** A dialog that shows a secret once, right after it was made. */
import { useTexts } from "../texts/texts.tsx";
import { Button } from "./button.tsx";
import { Dialog, DialogHead } from "./dialog.tsx";
import { Code, Note } from "./feedback.tsx";

export function SecretDialog({ title, secret, onClose }: { title: string; secret: string; onClose: () => void }) {
  const t = useTexts();
  return (
    <Dialog label={title} onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        <Note>{t.access.secretAbout}</Note>
        <Code text={secret} />
        <div className="line end">
          <Button kind="primary" onClick={onClose}>
            {t.common.close}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
