/**
 * Properties of every list of tunnels: sending back a response changes nothing, every valid tunnel has a spec and a peer
 * configuration in every format, and no text causes an unexpected error.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldError } from "@brume/api/errors.ts";
import { Tunnel, type TunnelInput, Vpn } from "@brume/api/vpn.ts";
import fc from "fast-check";
import { Check } from "typebox/value";
import { anyText } from "../../../../../test/support/texts.ts";
import { ApiError } from "../../../base/error.ts";
import { renderConnection, renderSecret } from "../../../drivers/router/ipsec/strongswan.ts";
import { ipsecDialects, renderPeerConfig, wireguardDialects } from "../../../drivers/router/model/peerconfig.ts";
import { decodeBody } from "../../../http/read/body.ts";
import { readFields } from "../../../http/read/fields.ts";
import { checkTunnels, type KnownTunnel, planTunnels } from "./plan.ts";
import type { TunnelNetwork } from "./read.ts";
import { readTunnel, showTunnel, toSpec, writeSettings } from "./tunnel.ts";

const network: TunnelNetwork = { cidr: "10.64.0.8/29", edgeAddress: "10.64.255.2", publicKey: null };
const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString("base64");
const near = { address: network.edgeAddress, wireguard: { publicKey: keyOf(7), listenPort: 51_820 } };

const plan = (Tunnels: TunnelInput[], known: readonly KnownTunnel[] = []) =>
  planTunnels(known, { Tunnels }, network, { sharedKey: () => "M".repeat(32) });

/** The tunnels of a list as they are read after they were stored. */
const store = (inputs: TunnelInput[]): KnownTunnel[] =>
  plan(inputs).tunnels.map(({ place, settings, sharedKey, labels }) => ({
    ...readTunnel({ id: place + 1, place, spec: writeSettings(settings), labels: JSON.stringify(labels) }),
    sharedKey,
  }));

const read = (body: unknown): { value: Vpn; errors: FieldError[] } =>
  readFields(Vpn, decodeBody(Buffer.from(JSON.stringify(body)), {}, false), { strict: false });

const sameAs = ({ pointer, code }: FieldError): string => `${pointer} ${code}`;

function problemsOf(inputs: TunnelInput[], known: readonly KnownTunnel[] = []): string[] {
  try {
    plan(inputs, known);
    return [];
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error.errors.map(sameAs);
  }
}

/** Inputs of all kinds, most of them valid; the index makes them distinct. */
const inputAt = (index: number): fc.Arbitrary<TunnelInput> => {
  const common = {
    Name: fc.constant(`t${index}`),
    PeerNetwork: fc.constantFrom(`10.${index}.0.0/16`, `10.${index}.1.0/24, 10.${index}.2.3`),
    Enabled: fc.boolean(),
    Mtu: fc.integer({ min: 576, max: 9000 }),
    LocalNetwork: fc.constantFrom("", "10.64.0.8/30,10.64.0.12/31", "10.64.0.10"),
    Labels: fc.constantFrom({}, { env: "prod", "a.b/c": "" }),
  };
  const ipsec = fc.record(
    {
      ...common,
      PeerEndpoint: fc.constantFrom(`192.0.2.${index + 1}`, `p${index}.example`),
      SharedKey: fc.constantFrom("", "q".repeat(16), "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
      PeerIdentificator: fc.constantFrom("", `a@p${index}.example`, `x${index}.example`, `10.7.7.${index}`),
      LocalIdentificator: fc.constantFrom("", "here.example", "me@here.example"),
      EncryptionType: fc.constantFrom("Aes", "Aes256", "TripleDes", "AesGcm"),
      IkeVersion: fc.constantFrom(1, 2),
      DhGroup: fc.constantFrom(2, 5, 14, 15, 16, 19, 20, 31),
      Digest: fc.constantFrom("Sha1", "Sha256", "Sha384", "Sha512"),
      PerfectForwardSecrecy: fc.boolean(),
    },
    { requiredKeys: ["Name", "PeerNetwork", "PeerEndpoint"] },
  );
  const wireguard = fc.record(
    {
      ...common,
      Type: fc.constant("WireGuard" as const),
      PeerPublicKey: fc.constant(keyOf(index)),
      PeerEndpoint: fc.constantFrom("", `p${index}.example:51820`, "192.0.2.9:1"),
      SharedKey: fc.constantFrom("", keyOf(200)),
      KeepAlive: fc.integer({ min: 0, max: 65_535 }),
    },
    { requiredKeys: ["Name", "PeerNetwork", "Type"] },
  );
  return fc.oneof(ipsec, wireguard) as fc.Arbitrary<TunnelInput>;
};
const inputs = fc
  .integer({ min: 1, max: 5 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, i) => inputAt(i))));

test("sending back a response changes nothing, with or without keys, and every tunnel has a configuration for both ends", () => {
  let planned = 0;
  fc.assert(
    fc.property(inputs, fc.boolean(), (inputs, isSecret) => {
      if (checkTunnels({ Tunnels: inputs }).length > 0 || problemsOf(inputs).length > 0) return;
      planned += 1;
      const known = store(inputs);
      const shown = known.map(({ sharedKey, ...tunnel }) =>
        showTunnel(tunnel, {
          state: "Active",
          sharedKey: isSecret ? "" : sharedKey,
          wireguard: near.wireguard,
          peerConfig: "",
        }),
      );
      for (const tunnel of shown) assert.ok(Check(Tunnel, tunnel), JSON.stringify(tunnel));
      const { value, errors } = read({ Tunnels: shown });
      assert.deepEqual([errors, checkTunnels(value)], [[], []]);
      const again = plan(value.Tunnels, known);
      assert.deepEqual(again.removed, []);
      for (const { changed } of again.tunnels) assert.equal(changed, false);
      for (const tunnel of known) {
        const spec = toSpec(tunnel, tunnel.sharedKey);
        assert.ok(spec.mtu <= (spec.type === "ipsec" ? 1400 : 1420));
        for (const dialect of Object.keys(spec.type === "ipsec" ? ipsecDialects : wireguardDialects)) {
          const text = renderPeerConfig(spec, near, dialect);
          assert.ok(text !== null && !/undefined|null/.test(text));
          if (tunnel.sharedKey !== null) assert.ok(!text.includes(tunnel.sharedKey));
        }
        if (spec.type === "wireguard") continue;
        assert.ok(spec.sharedKey.length >= 16);
        assert.ok(renderConnection(spec, network.edgeAddress, null)[`t-${tunnel.id}`]);
        assert.equal(renderSecret(spec, "s").data, tunnel.sharedKey);
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(planned > 100, `only ${planned} lists were good`);
});

test("no text causes an unexpected error, and errors before the transaction are errors in it too", () => {
  const odd = fc.oneof(
    anyText(40),
    fc.constantFrom(
      "",
      "any",
      "10.0.0.0/24",
      "a.example",
      "1.2.3.4:5",
      keyOf(3),
      "0.0.0.0/0",
      "a@b.example",
      "x".repeat(128),
    ),
  );
  const field = fc.option(odd, { nil: undefined });
  const input = fc.record({
    Id: fc.constantFrom(undefined, undefined, 1, 2, 3),
    Type: fc.constantFrom(undefined, "IPsec", "WireGuard"),
    IkeVersion: fc.constantFrom(undefined, 1, 2),
    EncryptionType: fc.constantFrom(undefined, "Aes", "AesGcm"),
    Name: field,
    SharedKey: field,
    PeerNetwork: field,
    PeerEndpoint: field,
    PeerIdentificator: field,
    LocalNetwork: field,
    LocalIdentificator: field,
    PeerPublicKey: field,
  });
  const known = store([
    { Name: "office", PeerNetwork: "10.0.0.0/24", PeerEndpoint: "203.0.113.50" },
    { Name: "laptop", Type: "WireGuard", PeerNetwork: "10.9.0.2", PeerPublicKey: keyOf(1) },
  ]);
  let seen = 0;
  fc.assert(
    fc.property(fc.array(input, { maxLength: 4 }), (list) => {
      const { value, errors } = read({ Tunnels: list });
      if (errors.length > 0) return;
      const found = problemsOf(value.Tunnels, known);
      for (const error of checkTunnels(value)) {
        const { Id, Type } = value.Tunnels[Number(error.pointer.split("/")[2])] ?? {};
        const storedType = known.find(({ id }) => id === Id)?.settings.Type;
        // For an unknown tunnel or a changed type, the transaction reports only that.
        if (Id !== undefined && (storedType === undefined || (Type ?? storedType) !== storedType)) continue;
        assert.ok(found.includes(sameAs(error)), `${sameAs(error)}: ${found.join()}`);
        seen += 1;
      }
    }),
    { numRuns: 200 },
  );
  assert.ok(seen > 100, `only ${seen} errors were seen`);
});
