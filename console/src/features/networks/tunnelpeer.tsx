/** The configuration for the peer of a tunnel: with placeholders, or once with its keys and as a QR code. */
import { type PeerDialect, peerDialects, type Tunnel, type TunnelPeer } from "@brume/api/vpn.ts";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData, useMay } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { hasNoKey } from "../../data/tunnelview.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button, buttonClass } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Code, ErrorBox, Note, Segments, Skeleton } from "../../ui/feedback.tsx";
import { Icon } from "../../ui/icon.tsx";

const dialectNames: Readonly<Record<PeerDialect, string>> = {
  strongswan: "strongSwan",
  libreswan: "Libreswan",
  mikrotik: "MikroTik",
  cisco: "Cisco",
  fortigate: "FortiGate",
  "wg-quick": "wg-quick",
  wg: "wg",
};

interface TunnelPeerProps {
  readonly network: number;
  readonly tunnel: Tunnel;
  readonly onClose: () => void;
}

export function TunnelPeerDialog({ network, tunnel, onClose }: TunnelPeerProps) {
  const t = useTexts();
  const { client, queries } = useData();
  const mayWrite = useMay("network:write");
  const { Name, Type, Id } = tunnel;
  const dialects: readonly PeerDialect[] = peerDialects[Type];
  const [peer, setPeer] = useState<PeerDialect>(dialects[0] ?? "strongswan");
  const [issued, setIssued] = useState<TunnelPeer | null>(null);
  const input = { path: { id: network, tunnelId: Id }, query: { peer } };
  const { data, error } = useQuery({
    queryKey: ["tunnelpeer", network, Id, peer],
    queryFn: ({ signal }) => client.readTunnelPeer(input, { signal }),
    gcTime: 0,
  });
  const issue = useChange(() => client.issueTunnelPeer(input, { wait: 5 }), {
    onDone(made) {
      setIssued(made);
      // The state from before says that the peer has no key.
      void queries.invalidateQueries({ queryKey: queriesOf(client).tunnelStatus(network).queryKey });
    },
    isQuiet: true,
  });
  const shown = issued ?? data;
  const title = t.vpn.peerTitle(Name);
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        {issued === null && (
          <Segments
            label={t.vpn.format}
            value={peer}
            options={dialects.map((name) => [name, dialectNames[name]])}
            onChange={setPeer}
          />
        )}
        {(issue.error ?? error) && <ErrorBox text={errorText(issue.error ?? error, t)} />}
        {issued === null ? (
          <p className="muted">{t.vpn.placeholders}</p>
        ) : (
          <Note kind="warn">{Type === "IPsec" ? t.vpn.issuedIpsec : t.vpn.issued}</Note>
        )}
        {shown === undefined ? (
          !error && <Skeleton lines={6} />
        ) : (
          <div className={issued !== null && shown.Qr !== "" ? "peer with-qr" : "peer"}>
            <Code text={shown.Config} />
            {issued !== null && shown.Qr !== "" && (
              <img
                className="qr"
                alt={t.vpn.qr}
                src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(shown.Qr)}`}
              />
            )}
          </div>
        )}
        {issued === null && mayWrite && (
          <>
            {Type === "WireGuard" && <Note>{hasNoKey(tunnel) ? t.vpn.issueAbout : t.vpn.reissueAbout}</Note>}
            <RequestPanel request={{ operation: "issueTunnelPeer", path: input.path }} />
          </>
        )}
        <div className="line end">
          {issued !== null && (
            <a
              className={buttonClass()}
              download={`${Name.replaceAll(/[^\w.-]/g, "_")}.conf`}
              href={`data:text/plain;charset=utf-8,${encodeURIComponent(issued.Config)}`}
            >
              <Icon name="download" />
              {t.vpn.download}
            </a>
          )}
          <Button onClick={onClose}>{t.common.close}</Button>
          {issued === null && mayWrite && (
            <Button
              kind="primary"
              icon="access"
              isBusy={issue.isBusy}
              onClick={() => void issue.run(undefined).catch(() => undefined)}
            >
              {t.vpn.issue[Type]}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  );
}
