/** The servers of a network with their addresses; links and unlinks them while they run. */
import type { NetworkLink } from "@brume/api/network.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMay } from "../../data/data.tsx";
import { LinkServer } from "../../data/linkserver.tsx";
import { queriesOf } from "../../data/queries.ts";
import { serverState } from "../../data/serverview.ts";
import { useStarted } from "../../data/started.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button, buttonClass, Copy } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty } from "../../ui/feedback.tsx";
import { Icon } from "../../ui/icon.tsx";
import { State } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";

interface LinkedServersProps {
  readonly id: number;
  readonly name: string;
  readonly links: readonly NetworkLink[];
  readonly isFull?: boolean;
}

export function LinkedServers({ id, name, links, isFull = false }: LinkedServersProps) {
  const t = useTexts();
  const { client } = useData();
  const mayWrite = useMay("server:write");
  const { data: servers = [] } = useQuery({ ...queriesOf(client).servers(), enabled: useMay("server:read") });
  const [isLinking, setLinking] = useState(false);
  const [leaving, setLeaving] = useState<NetworkLink | null>(null);
  const byId = useMemo(() => new Map(servers.map((server) => [server.ID, server])), [servers]);
  const columns = useMemo<Column<NetworkLink>[]>(() => {
    const nameOf = ({ ServerID }: NetworkLink): string => byId.get(ServerID)?.Name ?? `#${ServerID}`;
    return [
      {
        id: "server",
        name: t.network.server,
        width: "minmax(120px, 2fr)",
        isMain: true,
        cell: (link) =>
          byId.has(link.ServerID) ? (
            <Link to="/servers/$id" params={{ id: String(link.ServerID) }} className="whole">
              {nameOf(link)}
            </Link>
          ) : (
            nameOf(link)
          ),
      },
      {
        id: "state",
        name: t.common.state,
        width: "136px",
        cell: ({ ServerID, LinkState }) => {
          if (LinkState === "New") return <State tone="busy">{t.network.creating}</State>;
          const server = byId.get(ServerID);
          if (server === undefined) return null;
          const { tone, word } = serverState(server, t);
          return <State tone={tone}>{word}</State>;
        },
      },
      {
        id: "ip",
        name: t.servers.address,
        width: "minmax(130px, 1fr)",
        isBelow: true,
        isMain: true,
        cell: ({ IP }) => (
          <span className="line fixed tight">
            <span className="mono">{IP}</span>
            <Copy text={IP} label={t.network.linkIp} />
          </span>
        ),
      },
      ...(links.some(({ IP6 }) => IP6 !== "")
        ? [
            {
              id: "ip6",
              name: "IPv6",
              width: "minmax(150px, 1fr)",
              cell: ({ IP6 }: NetworkLink) => <span className="mono">{IP6}</span>,
            },
          ]
        : []),
      { id: "mac", name: "MAC", width: "minmax(140px, 1fr)", cell: ({ MAC }) => <span className="mono">{MAC}</span> },
      ...(mayWrite
        ? [
            rowButton<NetworkLink>({
              name: t.network.unlink,
              icon: "unlink",
              labelOf: (link) => t.network.unlinkTitle(nameOf(link)),
              onPress: setLeaving,
            }),
          ]
        : []),
    ];
  }, [t, byId, links, mayWrite]);
  const others = servers.filter(
    ({ ID, State: state }) => state === "Active" && !links.some((one) => one.ServerID === ID),
  );
  return (
    <section className="stack tight" aria-label={t.networks.servers}>
      <div className="line apart">
        <h2>{t.networks.servers}</h2>
        {mayWrite && (
          <div className="line">
            {isFull && <span className="muted">{t.network.full}</span>}
            {!isFull && others.length > 0 && (
              <Button icon="link" onClick={() => setLinking(true)}>
                {t.network.link}
              </Button>
            )}
            {!isFull && (
              <Link to="/servers/create" search={{ network: String(id) }} className={buttonClass()}>
                <Icon name="plus" />
                {t.servers.create}
              </Link>
            )}
          </div>
        )}
      </div>
      <DataTable
        label={t.networks.servers}
        columns={columns}
        rows={links}
        idOf={({ LinkID }) => LinkID}
        nameOf={({ IP }) => IP}
        empty={<Empty icon="server" title={t.network.serversEmpty} />}
      />
      {isLinking && (
        <LinkServer
          title={t.network.linkTitle(name)}
          action={t.network.link}
          choose="server"
          servers={others.map(({ ID, Name }) => ({ id: ID, name: Name }))}
          networks={[{ id, name }]}
          onClose={() => setLinking(false)}
        />
      )}
      {leaving !== null && (
        <Unlink
          link={leaving}
          server={byId.get(leaving.ServerID)?.Name ?? String(leaving.ServerID)}
          onClose={() => setLeaving(null)}
        />
      )}
    </section>
  );
}

function Unlink({ link, server, onClose }: { link: NetworkLink; server: string; onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const started = useStarted();
  const path = { id: link.ServerID };
  const body = { Type: "RemoveNetwork", NetworkLinkID: link.LinkID } as const;
  return (
    <ConfirmRequest
      title={t.network.unlinkTitle(server)}
      action={t.network.unlink}
      request={{ operation: "startAction", path, body }}
      send={() => client.startAction({ path, body })}
      done={(action) => started(action, t.network.unlinked(server))}
      onClose={onClose}
    >
      <p>{t.network.unlinkAbout}</p>
    </ConfirmRequest>
  );
}
