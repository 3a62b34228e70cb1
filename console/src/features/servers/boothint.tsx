/** Why SSH does not respond: the server is off, or, for some minutes after a start, the guest may still boot. */
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { bootsUntil } from "../../data/boottime.ts";
import { useData } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Note } from "../../ui/feedback.tsx";

export function BootHint({ server: { ID, State, IsPowerOn } }: { server: Server }) {
  const t = useTexts();
  const { data: actions = [] } = useQuery(queriesOf(useData().client).actions(ID));
  const isOff = State === "Active" && !IsPowerOn;
  const end = State === "Active" && IsPowerOn ? bootsUntil(actions) : null;
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (end === null) return undefined;
    setNow(Date.now());
    const timer = setTimeout(() => setNow(end), end - Date.now());
    return () => clearTimeout(timer);
  }, [end]);
  if (isOff) return <Note>{t.servers.notNow.off}</Note>;
  if (end === null || end <= now) return null;
  return (
    <Note>
      {t.server.boots}{" "}
      <Link to="/servers/$id" params={{ id: String(ID) }} search={{ tab: "log" }}>
        {t.server.bootOutput}
      </Link>
    </Note>
  );
}
