/** The status of a tunnel in the form of the API, from every status that the router driver can report. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TunnelStatus } from "@brume/api/vpn.ts";
import { taskErrors } from "@brume/api/work.ts";
import { Check } from "typebox/value";
import { tunnelUp } from "../../../../../test/support/tunnelspec.ts";
import type { TunnelFault } from "../../../drivers/router/interface.ts";
import { type ObservedStatus, showStatus } from "./status.ts";
import type { TunnelSettings } from "./tunnel.ts";

const settings: TunnelSettings = {
  Type: "IPsec",
  Name: "office",
  Enabled: true,
  Mtu: 1400,
  PeerNetwork: "10.0.0.0/24",
  PeerEndpoint: "203.0.113.50",
  LocalNetwork: "10.64.0.8/29",
  EncryptionType: "Aes256",
  PeerIdentificator: "203.0.113.50",
  LocalIdentificator: "10.64.255.2",
  IkeVersion: 2,
  DhGroup: 14,
  Digest: "Sha256",
  PerfectForwardSecrecy: true,
};
const up = tunnelUp(3);
const show = (word: ObservedStatus, change: Partial<TunnelSettings> = {}): TunnelStatus => {
  const status = showStatus({ id: 3, settings: { ...settings, ...change } as TunnelSettings }, word, null);
  assert.ok(Check(TunnelStatus, status));
  assert.equal(status.Operational, status.State === "Up");
  return status;
};

test("a tunnel that is up is shown as in the example of the API", () => {
  assert.equal(
    JSON.stringify([show(up)]),
    '[{"TunnelId":3,"Operational":true,"State":"Up","Error":null,"EstablishedAt":"2026-11-20T09:20:11.007Z","BytesIn":104857,"BytesOut":98112,"LastSeen":"2026-11-20T09:20:12.450Z","LocalSubnets":["10.64.0.8/29"],"PeerSubnets":["10.0.0.0/24"],"PeerAddress":"203.0.113.50","Proposal":"AES_CBC_256/HMAC_SHA2_256_128/MODP_2048"}]',
  );
});

test("every reason of the engine is an error object", () => {
  const reasons: readonly TunnelFault[] = [
    "authentication_failed",
    "no_proposal_chosen",
    "selectors_refused",
    "peer_unreachable",
    "engine_unavailable",
  ];
  for (const fault of reasons) {
    const {
      Error: error,
      State,
      Proposal,
      LocalSubnets,
    } = show({ ...up, state: "down", reason: { fault, detail: "So it is." } });
    assert.deepEqual(error, {
      type: `/docs#${fault}`,
      title: taskErrors[fault],
      detail: "So it is.",
      code: fault,
      step: null,
    });
    assert.deepEqual([State, Proposal, LocalSubnets], ["Down", "", []]);
  }
});

test("the desired state counts before the state of the engine", () => {
  for (const word of [up, "silent", "absent"] as const) {
    const { State, Error: error, BytesIn } = show(word, { Enabled: false });
    assert.deepEqual([State, error, BytesIn], ["Disabled", null, 0]);
  }
  assert.equal(show({ ...up, state: "disabled" }).State, "Connecting");
});

test("a silent router and a tunnel that is not applied yet are shown differently", () => {
  const { State, Error: error } = show("silent");
  assert.deepEqual([State, error?.code], ["Unknown", "engine_unavailable"]);
  assert.deepEqual([show("absent").State, show("absent").Error], ["Connecting", null]);
  assert.equal(show({ ...up, state: "connecting" }).State, "Connecting");
});

test("the peer's address is the configured one until the engine reports another", () => {
  assert.equal(show("silent").PeerAddress, "203.0.113.50");
  assert.equal(show("silent", { PeerEndpoint: "any" }).PeerAddress, "");
  assert.equal(show("silent", { Type: "WireGuard", PeerEndpoint: "vpn.example:51820" }).PeerAddress, "vpn.example");
  assert.equal(show("silent", { Type: "WireGuard", PeerEndpoint: "" }).PeerAddress, "");
});
