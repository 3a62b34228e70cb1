/** Addresses of a public network and its servers. */
import type { PublicNetwork } from "@brume/api/network.ts";
import { labelTexts } from "../../data/label.ts";
import { firewallState, serversOf } from "../../data/networkview.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Tags } from "../../ui/filters.tsx";
import { Facts, Panel, State } from "../../ui/page.tsx";
import { LinkedServers } from "./linkedservers.tsx";

export function NetworkOverview({ network }: { network: PublicNetwork }) {
  const t = useTexts();
  const format = useFormat();
  const { Id, CIDR, CIDR6, EdgeExternalIp, Gateway, Bandwidth, LinkedServers: links, Labels } = network;
  const all = serversOf(Number(network.NetworkCapacity));
  const firewall = firewallState(network, t);
  const mono = (text: string) => <span className="mono">{text}</span>;
  return (
    <div className="stack">
      <Panel title={t.network.facts}>
        <div className="columns facts-columns">
          <Facts
            facts={[
              { name: t.networks.block, value: mono(CIDR), copy: CIDR },
              CIDR6 !== null && { name: t.network.ipv6, value: mono(CIDR6), copy: CIDR6 },
              { name: t.networks.gateway, value: mono(Gateway), copy: Gateway },
              { name: t.networks.edge, value: mono(EdgeExternalIp), copy: EdgeExternalIp },
              { name: t.network.usable, value: t.networks.of(links.length, all) },
            ]}
          />
          <Facts
            facts={[
              {
                name: t.networks.firewall,
                value: (
                  <State tone={firewall.tone} icon={firewall.tone === "quiet" ? "off" : "shield"}>
                    {firewall.word}
                  </State>
                ),
              },
              { name: t.networks.bandwidth, value: format.megabits(Bandwidth) },
              { name: t.network.dhcp, value: network.IsDHCP ? t.common.yes : t.common.no },
              { name: t.server.location, value: network.DCLocation },
              {
                name: t.common.created,
                value: <time dateTime={network.DateCreate}>{format.time(network.DateCreate)}</time>,
              },
              Object.keys(Labels).length > 0 && {
                name: t.common.labels,
                value: <Tags texts={labelTexts(Labels)} />,
              },
              { name: "ID", value: Id, copy: String(Id) },
            ]}
          />
        </div>
      </Panel>
      <LinkedServers id={Id} name={network.Name} links={links} isFull={links.length >= all} />
    </div>
  );
}
