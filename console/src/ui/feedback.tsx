/** What a page shows instead of its content: placeholders, an empty state, an error with its remedy; and code to copy. */
import { type ReactNode, useState } from "react";
import { inOrder } from "../texts/isolate.ts";
import { useTexts } from "../texts/texts.tsx";
import { Button, Copy } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

/** Placeholders of `lines` lines. */
export function Skeleton({ lines = 5 }: { lines?: number }) {
  const t = useTexts();
  return (
    <div className="stack" aria-busy="true" aria-label={t.common.loading} role="status">
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className="skeleton" style={{ width: `${92 - ((index * 23) % 50)}%` }} />
      ))}
    </div>
  );
}

/** What a list is for, when it has no rows: a sentence, the one action and its command. */
export function Empty({
  icon,
  title,
  children,
  action,
  command,
  isPage = false,
}: {
  icon: IconName;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  command?: string | undefined;
  /** It is all that the page shows. */
  isPage?: boolean;
}) {
  const Heading = isPage ? "h1" : "h2";
  return (
    <div className="empty">
      <Icon name={icon} size={32} />
      <Heading>{title}</Heading>
      {children !== undefined && <p>{children}</p>}
      {action}
      {command !== undefined && <Code text={command} />}
    </div>
  );
}

/** An error that a person can act on. */
export interface ErrorText {
  readonly title: string;
  readonly cause: string;
  readonly remedy: string;
  readonly requestId: string;
}

/** The id of a request, by which the log of the service names it; empty: nothing is shown. */
export function RequestId({ id }: { id: string }) {
  const t = useTexts();
  if (id === "") return null;
  return (
    <span className="muted small">
      {t.common.request} <code>{id}</code>
      <Copy text={id} label={t.common.request} />
    </span>
  );
}

interface ErrorBoxProps {
  readonly text: ErrorText;
  readonly onRetry?: (() => void) | undefined;
  /** It is all that the page shows. */
  readonly isPage?: boolean;
}

export function ErrorBox({ text, onRetry, isPage = false }: ErrorBoxProps) {
  const t = useTexts();
  const Title = isPage ? "h1" : "strong";
  return (
    <div className="error-box" role="alert">
      <Icon name="error" />
      <div className="stack tight grow">
        <Title>{text.title}</Title>
        <p className="break">{text.cause}</p>
        {text.remedy !== "" && <p>{text.remedy}</p>}
        <div className="line">
          {onRetry && (
            <Button size="small" icon="refresh" onClick={onRetry}>
              {t.common.retry}
            </Button>
          )}
          <RequestId id={text.requestId} />
        </div>
      </div>
    </div>
  );
}

/** A hint above a form or table. */
export function Note({ kind = "calm", children }: { kind?: "calm" | "warn"; children: ReactNode }) {
  return (
    <div className={`error-box ${kind}`}>
      <Icon name={kind === "warn" ? "warn" : "info"} />
      <div className="stack tight grow">{children}</div>
    </div>
  );
}

/** An option of a command, which is short enough for a line. */
const option = /^--?[\w-]{1,24}\s*$/;

/** A text to copy, such as a command line. */
export function Code({ text }: { text: string }) {
  const t = useTexts();
  return (
    <div className="code">
      <pre>
        {inOrder(text)
          .split(/(?<=\s)(?=-)|(?<=\s)(?!-)/)
          .map((part, index) =>
            option.test(part) ? (
              <span key={index} className="option">
                {part}
              </span>
            ) : (
              part
            ),
          )}
      </pre>
      <Copy text={text} label={t.common.command} />
    </div>
  );
}

/** The same request in several languages: one is shown at a time. */
export function Codes({ codes }: { codes: readonly { readonly name: string; readonly text: string }[] }) {
  const t = useTexts();
  const [shown, setShown] = useState(codes[0]?.name ?? "");
  return (
    <div className="stack tight">
      <Segments
        label={t.common.language}
        value={shown}
        options={codes.map(({ name }) => [name, name])}
        onChange={setShown}
      />
      <Code text={codes.find(({ name }) => name === shown)?.text ?? ""} />
    </div>
  );
}

/** Letters of all options that fit into one row of a phone. */
const mostLetters = 44;

/** One of several values, as buttons in a row. On a phone they fill the width, long ones two to a row. */
export function Segments<V extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: V;
  options: readonly (readonly [value: V, text: string])[];
  onChange: (value: V) => void;
}) {
  const letters = Math.max(...options.map(([, text]) => text.length)) * options.length;
  return (
    <div className={letters > mostLetters ? "segments pairs" : "segments"} role="group" aria-label={label}>
      {options.map(([option, text]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
          {text}
        </button>
      ))}
    </div>
  );
}
