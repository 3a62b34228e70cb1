/** Files that one selects: a button, and a field for the text of a file, which can also be typed, pasted or dropped. */
import { type DragEvent, type ReactNode, useRef } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Button } from "./button.tsx";
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

/** A button that opens the dialog of the system to select a file. */
export function FileButton({ label, onFile }: { readonly label: string; readonly onFile: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button size="small" icon="file" onClick={() => input.current?.click()}>
        {label}
      </Button>
      <input
        ref={input}
        aria-label={label}
        type="file"
        hidden
        onChange={({ target }) => {
          const file = target.files?.[0];
          if (file !== undefined) onFile(file);
          // The same file can be selected again.
          target.value = "";
        }}
      />
    </>
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
