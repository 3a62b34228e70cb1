/** The section that deletes an object: the last one of its page or of its settings, for all kinds of objects. */
import { type ReactNode, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Button } from "./button.tsx";
import { Panel } from "./page.tsx";

interface RemovalProps {
  readonly title: string;
  /** What is lost, or why the object cannot be deleted now. */
  readonly about: string;
  readonly isDisabled?: boolean;
  /** Returns the dialog that confirms and deletes. */
  readonly dialog: (onClose: () => void) => ReactNode;
}

export function Removal({ title, about, isDisabled = false, dialog }: RemovalProps) {
  const t = useTexts();
  const [isOpen, setOpen] = useState(false);
  return (
    <Panel title={<span className="break">{title}</span>} kind="danger">
      <div className="stack tight">
        <p className="muted">{about}</p>
        <div className="line">
          <Button kind="danger" icon="trash" disabled={isDisabled} onClick={() => setOpen(true)}>
            {t.common.delete}
          </Button>
        </div>
      </div>
      {isOpen && dialog(() => setOpen(false))}
    </Panel>
  );
}
