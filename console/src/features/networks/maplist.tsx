/** The map of networks as a nested list. */
import type { TunnelStatus } from "@brume/api/vpn.ts";
import { type MapNetwork, type Rate, rateOfNetwork } from "../../data/networkmap.ts";
import { useTexts } from "../../texts/texts.tsx";
import { MoreNode, NetworkNode, ServerNode, TunnelNode, useRateText } from "./mapnodes.tsx";

interface MapListProps {
  readonly networks: readonly MapNetwork[];
  readonly rates: ReadonlyMap<number, Rate>;
  readonly tunnels: {
    readonly states: ReadonlyMap<number, TunnelStatus>;
    readonly rates: ReadonlyMap<number, Rate>;
  };
}

export function MapList({ networks, rates, tunnels }: MapListProps) {
  const t = useTexts();
  const rateText = useRateText();
  const traffic = (rate: Rate | undefined) =>
    rate !== undefined && <span className="rate number muted small">{rateText(rate)}</span>;
  return (
    <ul className="map-list" aria-label={t.map.label}>
      {networks.map((network) => (
        <li key={network.id} className="panel">
          <div className="node head">
            <NetworkNode network={network} />
            {traffic(rateOfNetwork(network, rates))}
          </div>
          <ul>
            {network.tunnels.map((tunnel) => (
              <li key={`tunnel-${tunnel.Id}`} className="node">
                <TunnelNode
                  network={network.id}
                  tunnel={tunnel}
                  status={tunnels.states.get(tunnel.Id)}
                  rate={tunnels.rates.get(tunnel.Id)}
                />
                {traffic(tunnels.rates.get(tunnel.Id))}
              </li>
            ))}
            {network.servers.map((server) => (
              <li key={server.id} className="node">
                <ServerNode server={server} rate={rates.get(server.id)} />
                {traffic(rates.get(server.id))}
              </li>
            ))}
            {network.more > 0 && (
              <li className="node">
                <MoreNode network={network} />
              </li>
            )}
            {network.servers.length === 0 && network.tunnels.length === 0 && (
              <li className="node none muted">{t.map.noServers}</li>
            )}
          </ul>
        </li>
      ))}
    </ul>
  );
}
