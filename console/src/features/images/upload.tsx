/** The upload of an image in its row: progress, pause, and the file to continue with after a reload of the page. */
import type { Image } from "@brume/api/catalog.ts";
import { useId } from "react";
import { useCell } from "../../data/cell.ts";
import { useData, useMay } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { OtherFile } from "../../data/uploads.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { RequestId } from "../../ui/feedback.tsx";
import { Meter } from "../../ui/page.tsx";

export function UploadState({ image }: { image: Pick<Image, "ID" | "Name" | "Upload"> }) {
  const t = useTexts();
  const format = useFormat();
  const { uploads } = useData();
  const mayWrite = useMay("server:write");
  const input = useId();
  const { ID, Name, Upload } = image;
  const upload = useCell(uploads.all).get(ID);
  const part = upload?.part ?? (Upload === null ? 0 : Upload.Received / Upload.Size);
  const state = upload?.state ?? "waiting";
  const isRunning = state === "sending" || state === "checking";
  const isOther = upload?.error instanceof OtherFile;
  const text = state === "failed" && !isOther ? errorText(upload?.error, t) : null;
  return (
    <div className="stack tight">
      <span className="small number">{t.images.uploading[state](format.number(Math.floor(part * 100)))}</span>
      <Meter label={t.images.states.Uploading} value={part * 100} limit={100} isProgress />
      {isOther && <span className="small">{t.images.otherFile}</span>}
      {text !== null && (
        <>
          <span className="small break">{`${text.cause} ${text.remedy}`}</span>
          <RequestId id={text.requestId} />
        </>
      )}
      {mayWrite && isRunning && (
        <Button size="small" aria-label={t.images.pauseOf(Name)} onClick={() => uploads.pause(ID)}>
          {t.images.pause}
        </Button>
      )}
      {mayWrite && upload !== undefined && !isRunning && !isOther && (
        <Button
          size="small"
          aria-label={t.images.resumeOf(Name)}
          onClick={() => uploads.start(image, upload.file, true)}
        >
          {t.images.resume}
        </Button>
      )}
      {mayWrite && (upload === undefined || isOther) && (
        <>
          <label className="small" htmlFor={input}>
            {t.images.sameFile}
          </label>
          <input
            id={input}
            className="input"
            type="file"
            onChange={({ target }) => {
              const file = target.files?.[0];
              if (file !== undefined) uploads.start(image, file, false);
            }}
          />
        </>
      )}
    </div>
  );
}
