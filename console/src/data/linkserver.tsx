/** The dialog that links a server to another network while it runs, for the pages of both. */
import { useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { SelectField, TextField } from "../ui/field.tsx";
import { BandwidthField } from "./bandwidthfield.tsx";
import { useData } from "./data.tsx";
import { FormDialog } from "./formdialog.tsx";
import { useStarted } from "./started.ts";

interface Named {
  readonly id: number;
  readonly name: string;
}

interface LinkServerProps {
  readonly title: string;
  readonly action: string;
  /** Which one the user chooses: the page is that of the other one. */
  readonly choose: "server" | "network";
  readonly servers: readonly Named[];
  readonly networks: readonly Named[];
  readonly onClose: () => void;
}

export function LinkServer({ title, action, choose, servers, networks, onClose }: LinkServerProps) {
  const t = useTexts();
  const { client } = useData();
  const [server, setServer] = useState(servers[0]?.id ?? 0);
  const [NetworkID, setNetwork] = useState(networks[0]?.id ?? 0);
  const [IP, setIp] = useState("");
  const [Bandwidth, setBandwidth] = useState<number>();
  const started = useStarted();
  const path = { id: server };
  const body = {
    Type: "AddNetwork",
    NetworkID,
    ...(IP !== "" && { IP }),
    ...(Bandwidth !== undefined && { Bandwidth }),
  } as const;
  const choice =
    choose === "server"
      ? { label: t.network.server, value: server, options: servers, select: setServer }
      : { label: t.server.network, value: NetworkID, options: networks, select: setNetwork };
  return (
    <FormDialog
      title={title}
      about={t.network.linkAbout}
      action={action}
      request={{ operation: "startAction", path, body }}
      isComplete={server !== 0 && NetworkID !== 0}
      send={(options) => client.startAction({ path, body }, options)}
      done={(made) => started(made, t.network.linked(servers.find(({ id }) => id === server)?.name ?? ""))}
      onClose={onClose}
    >
      {(error) => (
        <>
          <SelectField
            label={choice.label}
            autoFocus
            value={String(choice.value)}
            options={choice.options.map(({ id, name }) => [String(id), name])}
            onChange={({ target }) => choice.select(Number(target.value))}
          />
          <div className="columns">
            <TextField
              label={t.network.linkIp}
              hint={t.network.linkIpHint}
              error={error("/IP")}
              value={IP}
              onChange={({ target }) => setIp(target.value)}
            />
            <BandwidthField
              value={Bandwidth}
              hint={t.network.linkBandwidthHint}
              error={error("/Bandwidth")}
              onChange={setBandwidth}
            />
          </div>
        </>
      )}
    </FormDialog>
  );
}
