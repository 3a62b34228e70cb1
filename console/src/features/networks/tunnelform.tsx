/** Creates or edits a tunnel. Fields of the contract that have no input here are added from it. */
import type { PublicNetwork } from "@brume/api/network.ts";
import { type Tunnel, type TunnelInput, type TunnelType, tunnelTypes } from "@brume/api/vpn.ts";
import { useState } from "react";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { freePeerAddress } from "../../data/peeraddress.ts";
import { OtherFields } from "../../data/schemafields.tsx";
import { changeTunnel, tunnelsWith } from "../../data/tunnelview.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Check, Choice, TextField } from "../../ui/field.tsx";

interface TunnelFormProps {
  readonly network: PublicNetwork;
  /** Null: a new one. */
  readonly tunnel: Tunnel | null;
  readonly onDone: (made: PublicNetwork, name: string) => void;
  readonly onClose: () => void;
}

type Form = Readonly<Record<string, unknown>>;

const placed = ["Id", "Type", "Name", "Enabled", "PeerNetwork", "PeerEndpoint", "PeerIdentificator", "SharedKey"];
/** Fields of one type that the other one does not have. */
const fieldsOf: Readonly<Record<TunnelType, readonly string[]>> = {
  IPsec: [
    "EncryptionType",
    "PeerIdentificator",
    "LocalIdentificator",
    "IkeVersion",
    "DhGroup",
    "Digest",
    "PerfectForwardSecrecy",
  ],
  WireGuard: ["PeerPublicKey", "KeepAlive"],
};

/** Returns what the form changes; of a new tunnel everything that is filled in. */
function changesOf(form: Form, tunnel: Tunnel | null): TunnelInput {
  const before = (tunnel ?? {}) as Form;
  const kept = Object.entries(form).filter(([name, value]) => {
    if (value === undefined || Number.isNaN(value)) return false;
    if (tunnel === null || name === "SharedKey") return value !== "";
    return JSON.stringify(value) !== JSON.stringify(before[name]);
  });
  return Object.fromEntries(kept);
}

export function TunnelForm({ network, tunnel, onDone, onClose }: TunnelFormProps) {
  const t = useTexts();
  const { client } = useData();
  // Most tunnels of WireGuard are for one device.
  const [proposed] = useState(() => freePeerAddress(network));
  const [form, setForm] = useState<Form>(() => ({
    ...(tunnel ?? { Type: "WireGuard", Enabled: true, PeerNetwork: proposed }),
    SharedKey: "",
  }));
  const set = (part: Form): void => setForm((before) => ({ ...before, ...part }));
  const type = form["Type"] === "IPsec" ? "IPsec" : "WireGuard";
  const other = fieldsOf[type === "IPsec" ? "WireGuard" : "IPsec"];
  const own = Object.fromEntries(Object.entries(form).filter(([name]) => !other.includes(name)));
  const change = changesOf(own, tunnel);
  const { Tunnels, index } = tunnelsWith(network.Vpn.Tunnels, tunnel?.Id ?? null, change);
  const path = { id: network.Id };
  const textOf = (field: string): string => {
    const value = form[field];
    return typeof value === "string" ? value : "";
  };
  const name = textOf("Name");
  const isComplete =
    name !== "" && textOf("PeerNetwork") !== "" && (type === "WireGuard" || textOf("PeerEndpoint") !== "");
  return (
    <FormDialog
      title={tunnel === null ? t.vpn.create : t.vpn.edit(tunnel.Name)}
      action={tunnel === null ? t.vpn.create : t.common.save}
      kind="wide"
      request={{ operation: "configureVpn", path, body: { Tunnels } }}
      isComplete={isComplete && Object.keys(change).length > 0}
      send={(options) =>
        options.dryRun === true
          ? client.configureVpn({ path, body: { Tunnels } }, options)
          : changeTunnel(client, network.Id, tunnel?.Id ?? null, change)
      }
      done={() => (tunnel === null ? t.vpn.created(name) : t.vpn.saved(name))}
      onDone={(made) => onDone(made, name)}
      onClose={onClose}
    >
      {(error) => {
        const at = (field: string): string | undefined => error(`/Tunnels/${index}/${field}`);
        const field = (field: string, label: string, hint: string, more: { readonly type?: string } = {}) => (
          <TextField
            label={label}
            hint={hint}
            error={at(field)}
            spellCheck={false}
            value={textOf(field)}
            onChange={({ target }) => set({ [field]: target.value })}
            {...more}
          />
        );
        return (
          <>
            {field("Name", t.common.name, t.vpn.nameHint)}
            {tunnel === null && (
              <fieldset className="columns" aria-label={t.vpn.type}>
                {tunnelTypes.toReversed().map((one) => (
                  <Choice
                    key={one}
                    name="type"
                    title={t.vpn.types[one]}
                    about={t.vpn.typeAbout[one]}
                    checked={one === type}
                    onChange={() => {
                      const isProposal = textOf("PeerNetwork") === (type === "IPsec" ? "" : proposed);
                      set({ Type: one, ...(isProposal && { PeerNetwork: one === "IPsec" ? "" : proposed }) });
                    }}
                  />
                ))}
              </fieldset>
            )}
            <div className="columns">
              {field("PeerNetwork", t.vpn.peerNetwork, t.vpn.peerNetworkHints[type])}
              {field("PeerEndpoint", t.vpn.peerEndpoint, t.vpn.endpointHints[type])}
            </div>
            <div className="columns">
              {type === "IPsec"
                ? field("PeerIdentificator", t.vpn.peerId, t.vpn.peerIdHint)
                : field("PeerPublicKey", t.vpn.peerKey, t.vpn.peerKeyHint)}
              {type === "IPsec" &&
                field("SharedKey", t.vpn.sharedKey, tunnel === null ? t.vpn.sharedKeyHint : t.vpn.sharedKeyKept, {
                  type: "password",
                })}
            </div>
            <Check
              label={t.vpn.enabled}
              checked={form["Enabled"] === true}
              onChange={({ target }) => set({ Enabled: target.checked })}
            />
            <OtherFields
              operation="configureVpn"
              list="Tunnels"
              placed={new Set([...placed, ...other, "PeerPublicKey"])}
              value={form}
              error={(pointer) => at(pointer.slice(1))}
              onChange={set}
            />
          </>
        );
      }}
    </FormDialog>
  );
}
