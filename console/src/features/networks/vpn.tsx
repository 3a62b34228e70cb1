/** The tunnels of a public network with their state, its reason, and traffic. */
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Tunnel, TunnelStatus } from "@brume/api/vpn.ts";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { algorithmsOf } from "../../data/algorithms.ts";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { changeTunnel, hasNoKey, tunnelState, tunnelsWith } from "../../data/tunnelview.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, Note } from "../../ui/feedback.tsx";
import { Facts, HeadAction, Panel, State } from "../../ui/page.tsx";
import { TunnelForm } from "./tunnelform.tsx";
import { TunnelPeerDialog } from "./tunnelpeer.tsx";

type Open = { readonly kind: "edit" | "delete" | "peer"; readonly tunnel: Tunnel } | { readonly kind: "create" };

export function TunnelList({ network }: { network: PublicNetwork }) {
  const t = useTexts();
  const { client } = useData();
  const mayWrite = useMay("network:write") && network.State !== "Deleting";
  const { Tunnels } = network.Vpn;
  const { data: states } = useQuery({
    ...queriesOf(client).tunnelStatus(network.Id),
    enabled: Tunnels.length > 0,
  });
  const [open, setOpen] = useState<Open | null>(null);
  const close = (): void => setOpen(null);
  const button = mayWrite && (
    <Button kind="primary" icon="plus" onClick={() => setOpen({ kind: "create" })}>
      {t.vpn.create}
    </Button>
  );
  /** After a creation, the peer needs its configuration. */
  const showPeer = (made: PublicNetwork, name: string): void => {
    const tunnel = made.Vpn.Tunnels.find(({ Name }) => Name === name);
    setOpen(tunnel === undefined ? null : { kind: "peer", tunnel });
  };
  return (
    <div className="stack">
      <HeadAction>{button}</HeadAction>
      {Tunnels.length === 0 ? (
        <div className="table">
          <Empty
            icon="tunnel"
            title={t.vpn.emptyTitle}
            action={button}
            command={`brume vpn set ${network.Id} --tunnels '[{Name: laptop, Type: WireGuard, PeerNetwork: 10.9.0.2/32}]'`}
          >
            {t.vpn.emptyAbout}
          </Empty>
        </div>
      ) : (
        <>
          <p className="muted">{t.vpn.about}</p>
          {Tunnels.map((tunnel) => (
            <TunnelPanel
              key={tunnel.Id}
              tunnel={tunnel}
              status={states?.find(({ TunnelId }) => TunnelId === tunnel.Id)}
              mayWrite={mayWrite}
              onOpen={(kind) => setOpen({ kind, tunnel })}
            />
          ))}
        </>
      )}
      {open?.kind === "create" && <TunnelForm network={network} tunnel={null} onDone={showPeer} onClose={close} />}
      {open?.kind === "edit" && <TunnelForm network={network} tunnel={open.tunnel} onDone={close} onClose={close} />}
      {open?.kind === "peer" && <TunnelPeerDialog network={network.Id} tunnel={open.tunnel} onClose={close} />}
      {open?.kind === "delete" && (
        <ConfirmRequest
          title={t.vpn.deleteTitle(open.tunnel.Name)}
          action={t.common.delete}
          typed={open.tunnel.Name}
          request={{
            operation: "configureVpn",
            path: { id: network.Id },
            body: { Tunnels: tunnelsWith(Tunnels, open.tunnel.Id, null).Tunnels },
          }}
          send={() => changeTunnel(client, network.Id, open.tunnel.Id, null)}
          done={() => t.vpn.deleted(open.tunnel.Name)}
          onClose={close}
        >
          <p>{t.vpn.deleteAbout}</p>
        </ConfirmRequest>
      )}
    </div>
  );
}

interface TunnelPanelProps {
  readonly tunnel: Tunnel;
  readonly status: TunnelStatus | undefined;
  readonly mayWrite: boolean;
  readonly onOpen: (kind: "edit" | "delete" | "peer") => void;
}

function TunnelPanel({ tunnel, status, mayWrite, onOpen }: TunnelPanelProps) {
  const t = useTexts();
  const format = useFormat();
  const { Name, Type, PeerEndpoint, PeerNetwork, LocalNetwork } = tunnel;
  const { tone, word } = tunnelState(tunnel, status, t);
  const mono = (text: string) => <span className="mono break">{text}</span>;
  const peer = status?.PeerAddress || PeerEndpoint;
  return (
    <Panel
      title={
        <span className="line">
          <span className="break">{Name}</span>
          <span className="tag">{t.vpn.types[Type]}</span>
          <State tone={tone}>{word}</State>
        </span>
      }
      actions={
        <span className="line fixed">
          <Button size="small" icon="file" onClick={() => onOpen("peer")}>
            {t.vpn.config}
          </Button>
          {mayWrite && (
            <>
              <Button
                size="small"
                kind="quiet"
                icon="edit"
                aria-label={t.vpn.edit(Name)}
                onClick={() => onOpen("edit")}
              />
              <Button
                size="small"
                kind="quiet"
                icon="trash"
                aria-label={t.vpn.deleteTitle(Name)}
                onClick={() => onOpen("delete")}
              />
            </>
          )}
        </span>
      }
    >
      <div className="stack">
        {hasNoKey(tunnel) ? (
          <Note kind="warn">{t.vpn.noKeyAbout}</Note>
        ) : (
          status?.Error && (
            <Note kind="warn">
              <p>
                <strong>{t.errors.detail(status.Error.title)}</strong>{" "}
                <span className="break">{t.errors.detail(status.Error.detail)}</span>
              </p>
            </Note>
          )
        )}
        <div className="columns">
          <Facts
            facts={[
              { name: t.vpn.peer, value: peer === "" || peer === "any" ? t.vpn.anyPeer : mono(peer) },
              { name: t.vpn.behind, value: mono(PeerNetwork) },
              { name: t.vpn.local, value: mono(LocalNetwork) },
            ]}
          />
          {status && status.State !== "Disabled" && (
            <Facts
              facts={[
                {
                  name: t.vpn.traffic,
                  value: t.vpn.inOut(format.bytes(status.BytesIn), format.bytes(status.BytesOut)),
                },
                {
                  name: Type === "IPsec" ? t.vpn.lastSeen : t.vpn.handshake,
                  value: status.LastSeen === null ? t.common.never : format.ago(status.LastSeen),
                },
                status.Proposal !== "" && {
                  name: t.vpn.proposal,
                  // What the simulated engine reports is no algorithm.
                  value: status.Proposal === "simulated" ? t.host.simulated : algorithmsOf(status.Proposal),
                },
              ]}
            />
          )}
        </div>
      </div>
    </Panel>
  );
}
