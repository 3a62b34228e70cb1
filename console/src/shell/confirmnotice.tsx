/** Firewall rules that wait for a confirmation, on every page, with the time until they roll back. */
import type { PublicNetwork } from "@brume/api/network.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useId, useState } from "react";
import { useChange } from "../data/change.ts";
import { useData, useMay } from "../data/data.tsx";
import { setText } from "../data/firewall.ts";
import { queriesOf } from "../data/queries.ts";
import { RequestPanel } from "../data/requestpanel.tsx";
import { draftAgain, draftName, rollBack, rollBackKey, useRollBack } from "../data/rollback.ts";
import { useFormat, useTexts } from "../texts/texts.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogHead, Notices } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { useToast } from "../ui/toast.tsx";

const none: readonly PublicNetwork[] = [];

export function ConfirmNotices() {
  const t = useTexts();
  const { client, drafts, trials } = useData();
  const toast = useToast();
  const { data: networks = none } = useQuery({
    ...queriesOf(client).publicNetworks(),
    enabled: useMay("network:read"),
  });
  useRollBack(networks, (network, rules) => {
    const { Id, Name } = network;
    // The user can apply them again, also if another page is open now.
    const isOwn = trials.get(Id) === setText(rules);
    trials.delete(Id);
    if (isOwn && !drafts.has(draftName(Id))) drafts.set(draftName(Id), draftAgain(network, rules));
    const detail = isOwn ? `${t.firewall.rolledBackAbout} ${t.firewall.rolledBackKept}` : t.firewall.rolledBackAbout;
    toast({ kind: "bad", text: t.firewall.rolledBack(Name), detail, key: rollBackKey(Id) });
  });
  return networks
    .filter(({ Firewall }) => Firewall.ConfirmBy !== null)
    .map((network) => (
      <ConfirmNotice key={network.Id} network={network} by={Date.parse(network.Firewall.ConfirmBy ?? "")} />
    ));
}

function ConfirmNotice({ network, by }: { network: PublicNetwork; by: number }) {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const mayWrite = useMay("network:write");
  const id = useId();
  const [isShown, setShown] = useState(false);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const request = { path: { id: network.Id }, body: { Confirm: true } };
  const { run, isBusy } = useChange(() => client.configureFirewall(request), { done: () => t.firewall.kept });
  const restore = useChange(() => rollBack(client, network.Id, t), { done: () => t.firewall.restored(network.Name) });
  return (
    <>
      <Notices>
        <section className="notice stays" aria-labelledby={id}>
          <Icon name="wait" />
          <div className="grow">
            <span id={id} role="status">
              {mayWrite ? t.firewall.waiting(network.Name) : t.firewall.waitingReader(network.Name)}
            </span>{" "}
            <span role="timer" className="number nowrap">
              {t.firewall.left(format.duration(Math.max(0, by - now) / 1000))}
            </span>{" "}
            <Link to="/networks/$id" params={{ id: String(network.Id) }} search={{ tab: "firewall" }}>
              {t.firewall.show}
            </Link>
          </div>
          {mayWrite && (
            <div className="line">
              <Button
                size="small"
                kind="primary"
                isBusy={isBusy}
                onClick={() => void run(undefined).catch(() => undefined)}
              >
                {t.firewall.keep}
              </Button>
              <Button
                size="small"
                icon="undo"
                isBusy={restore.isBusy}
                onClick={() => void restore.run(undefined).catch(() => undefined)}
              >
                {t.firewall.rollBack}
              </Button>
              <Button
                size="small"
                kind="quiet"
                icon="terminal"
                aria-label={`${t.servers.commands}: ${t.firewall.keep}`}
                onClick={() => setShown(true)}
              />
            </div>
          )}
        </section>
      </Notices>
      {isShown && (
        <Dialog label={t.firewall.keep} kind="wide" onClose={() => setShown(false)}>
          <div className="inner">
            <DialogHead title={t.firewall.keep} onClose={() => setShown(false)} />
            <RequestPanel isMain request={{ operation: "configureFirewall", ...request }} />
          </div>
        </Dialog>
      )}
    </>
  );
}
