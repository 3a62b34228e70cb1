/** A field for the text of a file: typed, pasted, dropped, or read from a file that one selects. */
import type { DragEvent, ReactNode } from "react";
import { useTexts } from "../texts/texts.tsx";
import { FileButton } from "./button.tsx";
import { AreaField } from "./field.tsx";

interface FileTextProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly rows?: number;
  readonly autoFocus?: boolean;
  readonly value: string;
  readonly onText: (text: string) => void;
}

export function FileTextField({ onText, value, ...rest }: FileTextProps) {
  const t = useTexts();
  return (
    <div className="stack tight" {...dropText(onText)}>
      <AreaField {...rest} value={value} onChange={({ target }) => onText(target.value)} />
      <div className="line">
        <FileButton label={t.common.selectFile} onFile={(file) => void file.text().then(onText)} />
      </div>
    </div>
  );
}

/** Returns the handlers of an element that receives the text of a dropped file. */
export const dropText = (onText: (text: string) => void) => ({
  onDragOver(event: DragEvent) {
    if (event.dataTransfer.types.includes("Files")) event.preventDefault();
  },
  onDrop(event: DragEvent) {
    const [file] = event.dataTransfer.files;
    if (file === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    void file.text().then(onText);
  },
});
