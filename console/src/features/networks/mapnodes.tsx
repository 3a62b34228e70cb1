/** The nodes of the map of networks: each is a link to its page, named with its state and traffic. */
import type { Tunnel, TunnelStatus } from "@brume/api/vpn.ts";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useCallback } from "react";
import type { MapNetwork, MapServer, Rate } from "../../data/networkmap.ts";
import { networkState } from "../../data/networkview.ts";
import { serverState } from "../../data/serverview.ts";
import { tunnelState } from "../../data/tunnelview.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { type Tone, toneIcons } from "../../ui/page.tsx";

/** Returns the function that writes the traffic of an edge. */
export function useRateText(): (rate: Rate) => string {
  const t = useTexts();
  const format = useFormat();
  return useCallback(({ received, sent }) => t.map.rate(format.rate(received), format.rate(sent)), [t, format]);
}

/** Returns the function that writes traffic for screen readers. */
function useSpoken(): (rate: Rate | undefined) => string {
  const t = useTexts();
  const format = useFormat();
  return (rate) => (rate === undefined ? "" : `, ${t.map.spoken(format.rate(rate.received), format.rate(rate.sent))}`);
}

interface LinesProps {
  readonly icon: IconName;
  readonly title: ReactNode;
  readonly about: string;
  /** Neither an address nor a block. */
  readonly isText?: boolean;
  readonly tone?: Tone;
  /** What screen readers get beside the visible text. */
  readonly spoken?: string;
}

function Lines({ icon, title, about, isText = false, tone, spoken }: LinesProps) {
  return (
    <>
      <Icon name={icon} />
      <span className="lines">
        <strong className="truncate">{title}</strong>
        <span className={isText ? "muted truncate" : "muted truncate mono"}>{about}</span>
      </span>
      {spoken !== undefined && <span className="hidden-text">{spoken}</span>}
      {tone !== undefined && (
        <span className={`tone ${tone}`}>
          <Icon name={toneIcons[tone]} size={14} spins={tone === "busy"} />
        </span>
      )}
    </>
  );
}

export function OutsideNode() {
  const t = useTexts();
  return (
    <div className="inner">
      <Icon name="dns" />
      <span className="lines">
        <strong>{t.map.outside}</strong>
        <span className="muted truncate">{t.map.outsideAbout}</span>
      </span>
    </div>
  );
}

export function NetworkNode({ network }: { network: MapNetwork }) {
  const t = useTexts();
  const { id, kind, name, network: of } = network;
  if (of === null)
    return (
      <div className="inner">
        <Lines icon="network" title={name} about={t.map.shared} isText />
      </div>
    );
  const { tone, word } = networkState(of, t);
  return (
    <Link
      to={kind === "public" ? "/networks/$id" : "/networks/private/$id"}
      params={{ id: String(id) }}
      className="inner"
    >
      <Lines
        icon={kind === "private" ? "lock" : "network"}
        title={name}
        about={of.CIDR}
        tone={tone}
        spoken={`${t.map.kinds[kind]}, ${word}`}
      />
    </Link>
  );
}

export function ServerNode({ server, rate }: { server: MapServer; rate: Rate | undefined }) {
  const t = useTexts();
  const spoken = useSpoken();
  const about = server.links.map(({ ip }) => ip).join(", ");
  if (server.server === undefined)
    return (
      <div className="inner">
        <Lines icon="server" title={`#${server.id}`} about={about} />
      </div>
    );
  const { tone, word } = serverState(server.server, t);
  return (
    <Link to="/servers/$id" params={{ id: String(server.id) }} className="inner">
      <Lines icon="server" title={server.server.Name} about={about} tone={tone} spoken={`${word}${spoken(rate)}`} />
    </Link>
  );
}

interface TunnelNodeProps {
  readonly network: number;
  readonly tunnel: Tunnel;
  readonly status: TunnelStatus | undefined;
  readonly rate: Rate | undefined;
}

export function TunnelNode({ network, tunnel, status, rate }: TunnelNodeProps) {
  const t = useTexts();
  const spoken = useSpoken();
  const { tone, word } = tunnelState(tunnel, status, t);
  return (
    <Link to="/networks/$id" params={{ id: String(network) }} search={{ tab: "vpn" }} className="inner">
      <Lines
        icon="tunnel"
        title={tunnel.Name}
        about={tunnel.PeerNetwork}
        tone={tone}
        spoken={`${t.map.tunnel}, ${word}${spoken(rate)}`}
      />
    </Link>
  );
}

export function MoreNode({ network }: { network: MapNetwork }) {
  const t = useTexts();
  const text = t.map.more(network.more);
  if (network.kind === "shared")
    return (
      <Link to="/servers" className="inner">
        {text}
      </Link>
    );
  return (
    <Link
      to={network.kind === "public" ? "/networks/$id" : "/networks/private/$id"}
      params={{ id: String(network.id) }}
      className="inner"
    >
      {text}
    </Link>
  );
}
