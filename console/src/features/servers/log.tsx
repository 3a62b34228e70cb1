/** What the guest has printed on its serial console since its boot. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useData } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Segments, Skeleton, TroubleBox } from "../../ui/feedback.tsx";

/** Control sequences of terminals, which a page cannot show. */
// oxlint-disable-next-line no-control-regex
const sequences = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78cDEHM])|[\u0000-\u0008\u000b-\u001f\u007f]/g;

export function BootLog({ id }: { id: number }) {
  const t = useTexts();
  const [boot, setBoot] = useState<"current" | "previous">("current");
  const { data, error, isFetching, refetch } = useQuery(queriesOf(useData().client).log(id, boot === "previous"));
  const end = useRef<HTMLPreElement>(null);
  useEffect(() => {
    end.current?.scrollTo({ top: end.current.scrollHeight });
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
        <Button icon="refresh" size="small" isBusy={isFetching} onClick={() => void refetch()}>
          {t.server.follow}
        </Button>
      </div>
      {error ? (
        <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton />
      ) : (
        <pre className="log" ref={end} tabIndex={0} aria-label={t.server.tabs.log} role="log">
          {data === "" ? t.server.emptyLog : data.replaceAll(sequences, "")}
        </pre>
      )}
    </div>
  );
}
