/** Shows the request that a page is about to send as command line, curl and TypeScript. */
import { useEffect, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Codes, Skeleton } from "../ui/feedback.tsx";
import { Panel } from "../ui/page.tsx";
import type { Equivalent, Request } from "./equivalent.ts";

/** Requests that are shown of a long list. */
const mostShown = 20;

interface RequestPanelProps {
  /** One, or those of several objects. */
  readonly request: Request | readonly Request[];
  /** Only its title is shown until it is opened. */
  readonly isFolded?: boolean;
  /** Default: this request. */
  readonly title?: string;
}

export function RequestPanel({ request, isFolded = false, title }: RequestPanelProps) {
  const t = useTexts();
  const [codes, setCodes] = useState<readonly Equivalent[]>();
  const text = JSON.stringify(request);
  useEffect(() => {
    let isLeft = false;
    const show = async (): Promise<void> => {
      const { equivalentsOf } = await import("./equivalent.ts");
      const requests = [JSON.parse(text) as Request | readonly Request[]].flat();
      if (isLeft) return;
      const all = requests.slice(0, mostShown).map((one) => equivalentsOf(one, location.origin));
      const more = requests.length > mostShown ? `\n# + ${requests.length - mostShown}` : "";
      setCodes(
        (all[0] ?? []).map(({ name }, index) => ({
          name,
          text: `${all.map((codes) => codes[index]?.text).join("\n")}${name === "TypeScript" ? more.replace("#", "//") : more}`,
        })),
      );
    };
    void show();
    return () => {
      isLeft = true;
    };
  }, [text]);
  const shown = (
    <div className="stack tight">
      <p className="muted small">{t.create.requestAbout}</p>
      {codes === undefined ? <Skeleton lines={3} /> : <Codes codes={codes} />}
    </div>
  );
  if (!isFolded) return <Panel title={title ?? t.create.request}>{shown}</Panel>;
  return (
    <details className="panel">
      <summary>{title ?? t.create.request}</summary>
      <div className="body">{shown}</div>
    </details>
  );
}
