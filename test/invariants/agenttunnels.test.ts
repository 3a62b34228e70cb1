/** Every tunnel that the API accepts is one that the host agent accepts. A network with a refused tunnel could not be applied at all. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type TunnelInput, tunnelLimits } from "@brume/api/vpn.ts";
import fc from "fast-check";
import { createChecker } from "../../service/src/agent/check.ts";
import { Network } from "../../service/src/agent/contract/router.ts";
import { readHostPort, readPeer } from "../../service/src/network/model/vpn/fields.ts";
import { planTunnels } from "../../service/src/network/model/vpn/plan.ts";
import { toSpec } from "../../service/src/network/model/vpn/tunnel.ts";
import { createAgentLab } from "../support/agentlab.ts";
import { image } from "../support/networkspec.ts";
import { runsOf } from "../support/random.ts";
import { wireguardTunnel } from "../support/tunnelspec.ts";

const around = { cidr: "10.64.0.8/29", edgeAddress: "10.64.255.2", publicKey: null };

/** The specs of the tunnels of a request, as they are applied. */
const specsOf = (Tunnels: TunnelInput[]) =>
  planTunnels([], { Tunnels }, around, { sharedKey: () => "M".repeat(32) }).tunnels.map(
    ({ place, settings, sharedKey }) => toSpec({ id: place + 1, settings }, sharedKey),
  );

test("a network with a tunnel whose peer has no key yet is applied", async (t) => {
  const lab = await createAgentLab({});
  t.after(() => lab.close());
  const { router } = await lab.connect();
  const tunnels = specsOf([{ Name: "laptop", Type: "WireGuard", PeerNetwork: "10.9.0.2" }]);
  assert.equal(await router.apply(image({ tunnels })), 1);
  await assert.rejects(router.apply(image({ tunnels: [wireguardTunnel({ peerPublicKey: "short" })] })), /PublicKey/);
});

test("every host name of a peer and the longest list fit the contract", () => {
  const checker = createChecker(Network, "network");
  const character = fc.constantFrom("a", "Z", "0", "9", "_", "-");
  const label = fc.array(character, { minLength: 1, maxLength: 5 }).map((all) => all.join(""));
  const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join("."));
  const number = (most: number) => fc.integer({ min: 0, max: most });
  const address = fc.tuple(number(255), number(255), number(255), number(255)).map((parts) => parts.join("."));
  let accepted = 0;
  fc.assert(
    fc.property(fc.oneof(host, address), number(65_536), (name, port) => {
      const endpoint = `${name}:${port}`;
      const inputs: TunnelInput[] = [];
      if (typeof readPeer(name) === "string")
        inputs.push({ Name: "office", PeerNetwork: "10.8.0.0/16", PeerEndpoint: name });
      if (typeof readHostPort(endpoint) === "string")
        inputs.push({ Name: "laptop", Type: "WireGuard", PeerNetwork: "10.9.0.2", PeerEndpoint: endpoint });
      if (inputs.length > 0) accepted++;
      checker.check(image({ tunnels: specsOf(inputs) }));
    }),
    {
      numRuns: runsOf(5000, 1000),
      examples: [
        ["_vpn.example.com", 51_820],
        ["host_", 51_820],
        ["a".repeat(63), 1],
      ],
    },
  );
  assert.ok(accepted > 100, `only ${accepted} names were valid`);
  checker.check(
    image({ tunnels: Array.from({ length: tunnelLimits.tunnels }, (_, id) => wireguardTunnel({ id: id + 1 })) }),
  );
});
