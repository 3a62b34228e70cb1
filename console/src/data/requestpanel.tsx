/**
 * Shows the request that a page, dialog or side panel is about to send as command line, curl and TypeScript, below one line that opens it. It
 * is above the buttons. The browser keeps whether it is open, so who writes programs sees every request.
 */
import { useEffect, useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { Codes, Skeleton } from "../ui/feedback.tsx";
import { useFold } from "../ui/fold.ts";
import type { Equivalent, Request } from "./equivalent.ts";

/** Name under which the browser keeps whether requests are shown. */
const openName = "brume-request";

/** Requests that are shown of a long list. */
const mostShown = 20;

interface RequestPanelProps {
  /** One, or those of several objects. */
  readonly request: Request | readonly Request[];
  /** It is what the dialog is for, so it is open at first. */
  readonly isMain?: boolean;
  /** It has space of its own beside the form, so it is open until the user folds it. */
  readonly isBeside?: boolean;
  /** Default: this request. */
  readonly title?: string;
}

export function RequestPanel({ request, isMain = false, isBeside = false, title }: RequestPanelProps) {
  const t = useTexts();
  const fold = useFold(isMain ? null : openName, isMain || isBeside);
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
  return (
    <details className="panel" {...fold}>
      <summary>{title ?? t.create.request}</summary>
      <div className="body stack tight">
        <p className="muted small">{t.create.requestAbout}</p>
        {codes === undefined ? <Skeleton lines={3} /> : <Codes codes={codes} />}
      </div>
    </details>
  );
}
