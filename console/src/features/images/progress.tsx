/**
 * Images that are being added, and those that failed, above the list: progress, errors, pause, and the file to continue with after a reload
 * of the page.
 */
import type { Image } from "@brume/api/catalog.ts";
import type { ReactNode } from "react";
import { useCell } from "../../data/cell.ts";
import { useData, useMay } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { imageName } from "../../data/image.ts";
import { OtherFile } from "../../data/uploads.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button, FileButton } from "../../ui/button.tsx";
import { RequestId } from "../../ui/feedback.tsx";
import { Meter, Panel } from "../../ui/page.tsx";

export function ImageProgress({ images }: { images: readonly Image[] }) {
  const t = useTexts();
  const format = useFormat();
  const shown = images.filter(({ State }) => State === "Uploading" || State === "New" || State === "Failed");
  if (shown.length === 0) return null;
  return (
    <Panel title={t.images.additions} isFlush>
      <ul className="list padded" aria-label={t.images.additions}>
        {shown.map((image) => (
          <li key={image.ID} className="stack tight">
            {image.State === "Uploading" ? (
              <Upload image={image} />
            ) : (
              <Row
                name={imageName(image)}
                text={image.State === "New" ? t.images.progress(format.number(image.Progress)) : t.images.states.Failed}
              />
            )}
            {image.State === "New" && (
              <Meter
                label={`${t.images.states.New}: ${imageName(image)}`}
                value={image.Progress}
                limit={100}
                isProgress
              />
            )}
            {image.Error !== null && <p className="muted small break">{t.errors.detail(image.Error.detail)}</p>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Row({ name, text, children }: { name: string; text: string; children?: ReactNode }) {
  return (
    <div className="line apart">
      <strong className="break">{name}</strong>
      <span className="line">
        <span className="muted small number">{text}</span>
        {children}
      </span>
    </div>
  );
}

function Upload({ image }: { image: Image }) {
  const t = useTexts();
  const format = useFormat();
  const { uploads } = useData();
  const mayWrite = useMay("server:write");
  const { ID, Upload: received } = image;
  const name = imageName(image);
  const upload = useCell(uploads.all).get(ID);
  const part = upload?.part ?? (received === null ? 0 : received.Received / received.Size);
  const state = upload?.state ?? "waiting";
  const isRunning = state === "sending" || state === "checking";
  const isOther = upload?.error instanceof OtherFile;
  const text = state === "failed" && !isOther ? errorText(upload?.error, t) : null;
  return (
    <>
      <Row name={name} text={t.images.uploading[state](format.number(Math.floor(part * 100)))}>
        {mayWrite && isRunning && (
          <Button size="small" icon="pause" aria-label={t.images.pauseOf(name)} onClick={() => uploads.pause(ID)}>
            {t.images.pause}
          </Button>
        )}
        {mayWrite && upload !== undefined && !isRunning && !isOther && (
          <Button
            size="small"
            icon="play"
            aria-label={t.images.resumeOf(name)}
            onClick={() => uploads.start(image, upload.file, true)}
          >
            {t.images.resume}
          </Button>
        )}
      </Row>
      <Meter label={`${t.images.states.Uploading}: ${name}`} value={part * 100} limit={100} isProgress />
      {isOther && <p className="small">{t.images.otherFile}</p>}
      {text !== null && (
        <>
          <p className="small break">{`${text.cause} ${text.remedy}`}</p>
          <RequestId id={text.requestId} />
        </>
      )}
      {mayWrite && (upload === undefined || isOther) && (
        <div className="line">
          <FileButton label={t.images.sameFile} onFile={(file) => uploads.start(image, file, false)} />
        </div>
      )}
    </>
  );
}
