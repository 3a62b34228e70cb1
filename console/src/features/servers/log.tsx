/** What the guest has printed on its serial console since its boot. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";
import { ErrorBox, Segments, Skeleton } from "../../ui/feedback.tsx";
import { plainOutput } from "./output.ts";

/** Pixels above the end at which new lines still scroll the log. */
const slack = 40;

export function BootLog({ id }: { id: number }) {
  const t = useTexts();
  const [boot, setBoot] = useState<"current" | "previous">("current");
  const { data, error, refetch } = useQuery(queriesOf(useData().client).log(id, boot === "previous"));
  const end = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const box = end.current;
    // A reader who has scrolled up stays there.
    if (box !== null && (isAtEnd.current || data === undefined)) box.scrollTo({ top: box.scrollHeight });
  }, [data]);
  return (
    <div className="stack tight">
      <div className="line apart">
        <Segments
          label={t.server.tabs.log}
          value={boot}
          options={[
            ["current", t.server.currentBoot],
            ["previous", t.server.previousBoot],
          ]}
          onChange={setBoot}
        />
        {boot === "current" && <span className="muted small">{t.server.follow}</span>}
      </div>
      {error ? (
        <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton />
      ) : (
        <pre
          className="log"
          ref={end}
          tabIndex={0}
          aria-label={t.server.tabs.log}
          role="log"
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
            isAtEnd.current = scrollTop + clientHeight > scrollHeight - slack;
          }}
        >
          {data === "" ? t.server.emptyLog : plainOutput(data)}
        </pre>
      )}
    </div>
  );
}
