/** Facts of a server, how to connect to it, its networks, and its latest actions. */
import type { Server } from "@brume/api/server.ts";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../data/data.tsx";
import { useImageName } from "../../data/image.ts";
import { labelTexts } from "../../data/label.ts";
import { LinkServer } from "../../data/linkserver.tsx";
import { addressOf } from "../../data/serverview.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Code, Empty } from "../../ui/feedback.tsx";
import { Tags } from "../../ui/filters.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { ServerActions } from "./actions.tsx";
import { BootHint } from "./boothint.tsx";
import { useNetworkOptions } from "./networkoptions.ts";
import { Password } from "./password.tsx";

/** The name of a network, which leads to its page; the shared one has none. */
function NetworkName({
  link: { NetworkType, NetworkID, NetworkName: name },
}: {
  link: Server["LinkedNetworks"][number];
}) {
  const t = useTexts();
  const mayRead = useMay("network:read");
  if (NetworkType === "PublicShared") return t.create.sharedNetwork;
  if (!mayRead) return name;
  return (
    <Link
      to={NetworkType === "PublicClient" ? "/networks/$id" : "/networks/private/$id"}
      params={{ id: String(NetworkID) }}
    >
      {name}
    </Link>
  );
}

/** The button that links a server to another network, and its dialog. */
function LinkNetwork({ server: { ID, Name, State, LinkedNetworks } }: { server: Server }) {
  const t = useTexts();
  const mayWrite = useMay("server:write");
  const { options } = useNetworkOptions();
  const [isOpen, setOpen] = useState(false);
  const others = options.filter(({ id }) => !LinkedNetworks.some(({ NetworkID }) => NetworkID === id));
  if (!mayWrite || State !== "Active" || others.length === 0) return null;
  return (
    <>
      <Button size="small" kind="quiet" onClick={() => setOpen(true)}>
        {t.server.link}
      </Button>
      {isOpen && (
        <LinkServer
          title={t.server.linkTitle(Name)}
          action={t.server.link}
          choose="network"
          servers={[{ id: ID, name: Name }]}
          networks={others}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

export function ServerSummary({ server }: { server: Server }) {
  const t = useTexts();
  const format = useFormat();
  const { AdminUserName, AdminPassword, CPU, RAM, HDD } = server;
  const imageOf = useImageName();
  const address = addressOf(server);
  return (
    <div className="stack">
      <div className="columns">
        <Panel title={t.server.facts}>
          <Facts
            facts={[
              {
                name: t.servers.size,
                value: t.servers.sizeOf(CPU, format.megabytes(RAM), format.megabytes(HDD * 1024)),
              },
              { name: t.servers.image, value: imageOf(server) },
              { name: t.server.location, value: server.DCLocation },
              { name: t.server.hostName, value: server.HostName, copy: server.HostName },
              {
                name: t.common.created,
                value: <time dateTime={server.DateCreate}>{format.time(server.DateCreate)}</time>,
              },
              { name: t.server.protected, value: server.IsProtected ? t.common.yes : t.common.no },
              server.LinkedSshKeys.length > 0 && {
                name: t.server.keys,
                value: server.LinkedSshKeys.map(({ Title }) => Title).join(", "),
              },
              Object.keys(server.Labels).length > 0 && {
                name: t.common.labels,
                value: <Tags texts={labelTexts(server.Labels)} />,
              },
              server.BatchID !== null && {
                name: t.server.group,
                value: (
                  <Link to="/servers" search={{ group: String(server.BatchID) }}>
                    {t.servers.group(String(server.BatchID))}
                  </Link>
                ),
              },
              { name: "ID", value: server.ID, copy: String(server.ID) },
            ]}
          />
        </Panel>
        <Panel title={t.server.connect}>
          <div className="stack">
            <BootHint server={server} />
            {address !== "" && <Code text={`ssh ${AdminUserName}@${address}`} />}
            <Facts
              facts={[
                address !== "" && {
                  name: t.servers.address,
                  value: <span className="mono">{address}</span>,
                  copy: address,
                },
                { name: t.server.user, value: <span className="mono">{AdminUserName}</span>, copy: AdminUserName },
                AdminPassword !== "" && {
                  name: t.server.password,
                  value: <Password text={AdminPassword} />,
                },
              ]}
            />
          </div>
        </Panel>
        <Panel title={t.server.networks} isFlush actions={<LinkNetwork server={server} />}>
          {server.LinkedNetworks.length === 0 ? (
            <Empty icon="network" title={t.server.noNetworks} />
          ) : (
            <ul className="list padded">
              {server.LinkedNetworks.map((link) => (
                <li key={link.LinkID}>
                  <Facts
                    facts={[
                      { name: t.server.network, value: <NetworkName link={link} /> },
                      { name: t.servers.address, value: <span className="mono">{link.IP}</span>, copy: link.IP },
                      link.IP6 !== "" && {
                        name: "IPv6",
                        value: <span className="mono">{link.IP6}</span>,
                        copy: link.IP6,
                      },
                      { name: t.server.bandwidth, value: format.megabits(link.Bandwidth) },
                      { name: "MAC", value: <span className="mono">{link.MAC}</span>, copy: link.MAC },
                    ]}
                  />
                </li>
              ))}
            </ul>
          )}
        </Panel>
      </div>
      <ServerActions id={server.ID} most={5} />
    </div>
  );
}
