/** The rules of docs/spec.md#vpn-tunnel, applied to requests: parsed from a body, validated, planned and shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldError } from "@brume/api/errors.ts";
import { Tunnel, type TunnelInput, Vpn } from "@brume/api/vpn.ts";
import fc from "fast-check";
import { Check } from "typebox/value";
import { ApiError } from "../../../base/error.ts";
import { renderPeerConfig } from "../../../drivers/router/model/peerconfig.ts";
import { decodeBody } from "../../../http/read/body.ts";
import { readFields } from "../../../http/read/fields.ts";
import { checkTunnels, failsTunnelOnly, type KnownTunnel, planTunnels, type TunnelPlan } from "./plan.ts";
import type { TunnelNetwork } from "./read.ts";
import { readTunnel, showTunnel, toSpec, writeSettings } from "./tunnel.ts";

const network: TunnelNetwork = { cidr: "10.64.0.8/29", edgeAddress: "10.64.255.2", publicKey: null };
const wireguard = { publicKey: Buffer.alloc(32, 7).toString("base64"), listenPort: 51_820 };
const made = "M".repeat(32);
const make = { sharedKey: () => made };
const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString("base64");

const office = {
  Name: "office",
  SharedKey: "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu",
  PeerNetwork: "10.0.0.0/24",
  PeerEndpoint: "203.0.113.50",
} as const satisfies TunnelInput;
const laptop = {
  Name: "laptop",
  Type: "WireGuard",
  PeerNetwork: "10.9.0.2/32",
  PeerPublicKey: keyOf(1),
} as const satisfies TunnelInput;

function read(body: unknown): { value: Vpn; errors: FieldError[] } {
  return readFields(Vpn, decodeBody(Buffer.from(JSON.stringify(body)), {}, false), { strict: false });
}

/** The tunnels of a plan as they are read after they were stored. */
const store = ({ tunnels }: TunnelPlan): KnownTunnel[] =>
  tunnels.map(({ id, place, settings, sharedKey, labels }) => ({
    ...readTunnel({ id: id ?? place + 1, place, spec: writeSettings(settings), labels: JSON.stringify(labels) }),
    sharedKey,
  }));

const plan = (inputs: readonly TunnelInput[], known: readonly KnownTunnel[] = []): TunnelPlan =>
  planTunnels(known, { Tunnels: [...inputs] }, network, make);

const show = ({ sharedKey, ...tunnel }: KnownTunnel) =>
  showTunnel(tunnel, {
    state: "Active",
    sharedKey,
    wireguard,
    peerConfig: renderPeerConfig(toSpec(tunnel, sharedKey), { address: network.edgeAddress, wireguard }) ?? "",
  });

/** Pointers and codes of the errors of `planTunnels`; the code of the request first if it is not `validation_failed`. */
function problemsOf(inputs: readonly TunnelInput[], known: readonly KnownTunnel[] = []): string[] {
  try {
    plan(inputs, known);
    return [];
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error.errors.map(({ pointer, code }) => `${pointer} ${code}`);
  }
}

const checks = (...inputs: readonly TunnelInput[]): string[] =>
  checkTunnels({ Tunnels: [...inputs] }).map(({ pointer, code }) => `${pointer} ${code}`);

test("the example request of the API becomes its example response", () => {
  const { value, errors } = read({
    Tunnels: [
      {
        Name: "office",
        EncryptionType: "Aes256",
        SharedKey: office.SharedKey,
        PeerNetwork: "10.0.0.0/24",
        PeerEndpoint: "203.0.113.50",
        PeerIdentificator: "203.0.113.50",
        Mtu: "1400",
        Enabled: "true",
      },
    ],
  });
  assert.deepEqual([errors, checkTunnels(value)], [[], []]);
  const [tunnel] = store(planTunnels([], value, network, make));
  assert.ok(tunnel);
  const shown = show({ ...tunnel, id: 3 });
  assert.ok(Check(Tunnel, shown));
  assert.equal(
    JSON.stringify({ ...shown, PeerConfig: "" }),
    '{"Id":3,"State":"Active","Name":"office","Enabled":true,"Mtu":1400,"EncryptionType":"Aes256","SharedKey":"Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu","PeerNetwork":"10.0.0.0/24","PeerEndpoint":"203.0.113.50","PeerIdentificator":"203.0.113.50","Type":"IPsec","LocalNetwork":"10.64.0.8/29","LocalIdentificator":"10.64.255.2","IkeVersion":2,"DhGroup":14,"Digest":"Sha256","PerfectForwardSecrecy":true,"PeerPublicKey":"","PublicKey":"","ListenPort":null,"KeepAlive":null,"PeerConfig":"","Labels":{}}',
  );
  assert.match(shown.PeerConfig, /^connections \{\n {2}brume-3 \{\n {4}version = 2\n/);
});

test("fields of the other type are neither stored nor shown", () => {
  const [first, second] = store(
    plan([
      { ...office, PeerPublicKey: "no key", KeepAlive: 3 },
      { ...laptop, EncryptionType: "Aes", PeerIdentificator: "*", DhGroup: 2, Digest: "Sha1", IkeVersion: 1 },
    ]),
  );
  assert.ok(first && second);
  assert.deepEqual([show(first).PeerPublicKey, show(first).KeepAlive, show(first).PublicKey], ["", null, ""]);
  const shown = show(second);
  assert.ok(Check(Tunnel, shown));
  const { EncryptionType, PeerIdentificator, LocalIdentificator, IkeVersion, DhGroup, Digest } = shown;
  assert.deepEqual([EncryptionType, PeerIdentificator, LocalIdentificator, Digest], ["", "", "", ""]);
  assert.deepEqual([IkeVersion, DhGroup, shown.PerfectForwardSecrecy], [null, null, null]);
  const { PublicKey, ListenPort, KeepAlive, PeerEndpoint, SharedKey } = shown;
  assert.deepEqual(
    [PublicKey, ListenPort, KeepAlive, PeerEndpoint, SharedKey],
    [wireguard.publicKey, 51_820, 25, "", ""],
  );
});

test("an invalid field is an error if the tunnel's type has the field, and is ignored otherwise", () => {
  const known = store(plan([office, laptop]));
  /** Errors before the transaction, and those of the plan. */
  const errorsOf = (...Tunnels: readonly object[]): [string[], string[]] => {
    const { value, errors } = read({ Tunnels });
    const deferred = errors.filter((error) => failsTunnelOnly(value, error));
    const pointersOf = (some: readonly FieldError[]) => some.map(({ pointer }) => pointer.replace("/Tunnels/", ""));
    try {
      planTunnels(known, value, network, make, deferred);
      return [pointersOf(errors.filter((error) => !deferred.includes(error))), []];
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return [pointersOf(errors.filter((error) => !deferred.includes(error))), pointersOf(error.errors)];
    }
  };
  const foreign = { EncryptionType: "Nonsense", DhGroup: 99, IkeVersion: 3, Digest: 7, PerfectForwardSecrecy: "?" };
  const alien = { KeepAlive: 99_999, PeerPublicKey: "x".repeat(65) };
  const b = { ...office, Name: "b", PeerNetwork: "10.1.0.0/16", PeerEndpoint: "b.example" };
  assert.deepEqual(errorsOf({ ...laptop, ...foreign }, { ...office, ...alien }, { ...b, ...alien }), [[], []]);
  assert.deepEqual(errorsOf({ Id: 2, ...foreign }, { Id: 1, Type: "IPsec", ...alien }), [[], []]);
  assert.deepEqual(errorsOf({ ...b, DhGroup: 99 }, { ...laptop, KeepAlive: -1, Mtu: 1 }), [
    ["0/DhGroup", "1/Mtu", "1/KeepAlive"],
    [],
  ]);
  // Only the plan knows the type of a stored tunnel.
  assert.deepEqual(errorsOf({ Id: 1, DhGroup: 99, KeepAlive: -1 }, { Id: 2, KeepAlive: -1, Mtu: 1 }), [
    ["1/Mtu"],
    ["0/DhGroup", "1/KeepAlive"],
  ]);
});

test("a tunnel cannot connect a network to itself", () => {
  const at = (input: Partial<TunnelInput>) => problemsOf([{ ...office, ...input }]);
  for (const address of ["10.64.255.2", "10.64.0.8", "10.64.0.9", "10.64.0.15"])
    assert.deepEqual(at({ PeerEndpoint: address }), ["/Tunnels/0/PeerEndpoint fields_conflict"], address);
  assert.deepEqual(at({ PeerEndpoint: "10.64.0.16" }), []);
  assert.deepEqual(problemsOf([{ ...laptop, PeerEndpoint: "10.64.255.2:51820" }]), [
    "/Tunnels/0/PeerEndpoint fields_conflict",
  ]);
  assert.deepEqual(at({ PeerNetwork: "10.0.0.0/24,10.64.255.2" }), ["/Tunnels/0/PeerNetwork fields_conflict"]);
  // The edge's address may be inside a subnet of the peer.
  assert.deepEqual(at({ PeerNetwork: "10.64.255.0/24" }), []);
});

test("defaults depend on the documented fields", () => {
  const settings = (input: Partial<TunnelInput>) => plan([{ ...office, ...input }]).tunnels[0]?.settings;
  const has = (input: Partial<TunnelInput>, wanted: object) => assert.partialDeepStrictEqual(settings(input), wanted);
  has({ EncryptionType: "TripleDes" }, { Digest: "Sha1" });
  has({ EncryptionType: "TripleDes", Digest: "Sha512" }, { Digest: "Sha512" });
  has({ PeerEndpoint: "vpn.example.com" }, { PeerIdentificator: "vpn.example.com" });
  has({ PeerIdentificator: "" }, { PeerIdentificator: "203.0.113.50" });
  has({ LocalNetwork: "10.64.0.9/30", LocalIdentificator: "me@here.example" }, { LocalNetwork: "10.64.0.8/30" });
  assert.equal(plan([{ ...office, SharedKey: "" }]).tunnels[0]?.sharedKey, made);
  assert.equal(plan([laptop]).tunnels[0]?.sharedKey, null);
});

test("an edit keeps absent fields and keys; an empty field gets its default", () => {
  const known = store(
    plan([{ ...office, EncryptionType: "Aes", PeerIdentificator: "a.example", Labels: { env: "prod" } }]),
  );
  const edit = (input: Partial<TunnelInput>) => plan([{ Id: 1, ...input }], known).tunnels[0];
  assert.equal(edit({})?.changed, false);
  const cleared = edit({ PeerIdentificator: "", SharedKey: "", Name: "", PeerNetwork: "", PeerEndpoint: "" });
  const settings = { ...known[0]?.settings, PeerIdentificator: "203.0.113.50" };
  assert.deepEqual([cleared?.settings, cleared?.changed, cleared?.sharedKey], [settings, true, office.SharedKey]);
  assert.partialDeepStrictEqual(edit({ EncryptionType: "TripleDes" })?.settings, { Digest: "Sha256" });
  assert.partialDeepStrictEqual(edit({ PeerEndpoint: "b.example" })?.settings, { PeerIdentificator: "a.example" });
  assert.deepEqual([edit({ Labels: {} })?.labels, edit({ Labels: {} })?.changed], [{}, true]);
  assert.deepEqual([edit({})?.labels, edit({ SharedKey: "x".repeat(16) })?.changed], [{ env: "prod" }, true]);
});

test("tunnels not in the list are removed, those without id are created, and the order is that of the list", () => {
  const known = store(plan([office, laptop]));
  const other = { ...office, Name: "other", PeerNetwork: "10.1.0.0/16", PeerEndpoint: "other.example" };
  const { tunnels, removed } = plan([other, { Id: 2 }], known);
  assert.deepEqual(
    [tunnels.map(({ id, changed }) => [id, changed]), removed],
    [
      [
        [null, true],
        [2, false],
      ],
      [1],
    ],
  );
  assert.deepEqual(
    plan([{ Id: 2 }, { Id: 1 }], known).tunnels.map(({ id, place, changed }) => [id, place, changed]),
    [
      [2, 0, true],
      [1, 1, true],
    ],
  );
  assert.deepEqual(plan([], known), { tunnels: [], removed: [1, 2] });
});

test("errors that need no database are reported before the transaction, each at its field", () => {
  assert.deepEqual(checks({}, { Type: "WireGuard" }), [
    "/Tunnels/0/Name field_required",
    "/Tunnels/0/PeerNetwork field_required",
    "/Tunnels/0/PeerEndpoint field_required",
    "/Tunnels/1/Name field_required",
    "/Tunnels/1/PeerNetwork field_required",
  ]);
  const anyone = { ...office, PeerEndpoint: "any" };
  const rows: readonly (readonly [TunnelInput, string])[] = [
    [anyone, "PeerIdentificator field_required"],
    [{ ...anyone, PeerIdentificator: "192.0.2.1" }, "PeerIdentificator format_invalid"],
    [{ ...anyone, PeerIdentificator: "*" }, "PeerIdentificator format_invalid"],
    [{ ...office, SharedKey: "short" }, "SharedKey too_short"],
    [{ ...laptop, SharedKey: office.SharedKey }, "SharedKey format_invalid"],
    [{ ...office, PeerNetwork: "here" }, "PeerNetwork format_invalid"],
    [{ ...laptop, PeerEndpoint: "203.0.113.50" }, "PeerEndpoint format_invalid"],
    [{ ...office, LocalIdentificator: "a b" }, "LocalIdentificator format_invalid"],
    [{ ...office, EncryptionType: "AesGcm", IkeVersion: 1 }, "EncryptionType fields_conflict"],
    [{ Id: 1, PeerEndpoint: "a b" }, "PeerEndpoint format_invalid"],
    [{ Id: 1, LocalNetwork: "x" }, "LocalNetwork format_invalid"],
  ];
  for (const [input, error] of rows)
    assert.deepEqual(checks(laptop, input), [`/Tunnels/1/${error}`], JSON.stringify(input));
  assert.deepEqual(checks({ Id: 1 }, { Id: 2 }, { Id: 1 }), ["/Tunnels/2/Id fields_conflict"]);
  // It may edit a stored tunnel whose type or identity makes these fields valid.
  for (const input of [
    { PeerEndpoint: "a.example:1" },
    { PeerEndpoint: "any" },
    { PeerIdentificator: "1.2.3.4" },
    // The stored tunnel may have the other type; then the changed type is the error.
    { Type: "IPsec", PeerEndpoint: "any", PeerIdentificator: "1.2.3.4" },
    { Type: "WireGuard", PeerEndpoint: "203.0.113.5" },
    { SharedKey: office.SharedKey },
    { EncryptionType: "AesGcm" },
    { IkeVersion: 1 },
    { LocalNetwork: "10.0.0.0/8" },
  ] as const)
    assert.deepEqual(checks({ Id: 1, ...input }), [], JSON.stringify(input));
});

test("errors do not repeat a secret", () => {
  const { errors } = read({ Tunnels: [{ SharedKey: "with blanks in it", DhGroup: 3, Mtu: 100, KeepAlive: -1 }] });
  assert.deepEqual(
    errors.map(({ pointer, code }) => `${pointer} ${code}`),
    [
      "/Tunnels/0/Mtu out_of_range",
      "/Tunnels/0/SharedKey format_invalid",
      "/Tunnels/0/DhGroup value_not_allowed",
      "/Tunnels/0/KeepAlive out_of_range",
    ],
  );
  assert.ok(!JSON.stringify(errors).includes("blanks"));
  assert.deepEqual(
    read({}).errors.map(({ code }) => code),
    ["field_required"],
  );
  assert.deepEqual(
    read({ Tunnels: Array.from({ length: 10_001 }, () => office) }).errors.map(({ code }) => code),
    ["too_long"],
  );
});

test("the stored tunnels decide about an edit", () => {
  const known = store(plan([office, laptop]));
  assert.deepEqual(problemsOf([{ Id: 9 }, { Id: 1, SharedKey: "short" }], known), [
    "/Tunnels/0/Id unknown_reference",
    "/Tunnels/1/SharedKey too_short",
  ]);
  assert.deepEqual(problemsOf([{ Id: 1, Type: "WireGuard" }], known), ["/Tunnels/0/Type tunnel_type_fixed"]);
  assert.deepEqual(problemsOf([{ Id: 1, Type: "WireGuard" }, { Id: 2, Mtu: 576 }, { Name: "x" }], known), [
    "/Tunnels/2/PeerNetwork field_required",
    "/Tunnels/2/PeerEndpoint field_required",
  ]);
  assert.deepEqual(problemsOf([{ Id: 1, PeerEndpoint: "any" }], known), [
    "/Tunnels/0/PeerIdentificator format_invalid",
  ]);
  assert.deepEqual(problemsOf([{ Id: 1, LocalNetwork: "10.64.0.0/28" }], known), [
    "/Tunnels/0/LocalNetwork out_of_range",
  ]);
  const withKey = { ...network, publicKey: keyOf(1) };
  assert.throws(() => planTunnels([], { Tunnels: [laptop] }, withKey, make), { code: "validation_failed" });
});

test("subnets of peers overlap neither each other nor the network", () => {
  const to = (PeerNetwork: string, index: number): TunnelInput => ({
    ...office,
    Name: `t${index}`,
    PeerNetwork,
    PeerEndpoint: `p${index}.example`,
  });
  const overlapAt = (...blocks: readonly string[]) => problemsOf(blocks.map(to));
  assert.deepEqual(overlapAt("10.0.0.0/24,10.0.0.0/25", "10.0.1.0/24"), []);
  assert.deepEqual(overlapAt("10.64.0.0/16"), ["/Tunnels/0/PeerNetwork peer_network_overlap"]);
  assert.deepEqual(overlapAt("0.0.0.0/0"), ["/Tunnels/0/PeerNetwork peer_network_overlap"]);
  assert.deepEqual(overlapAt("10.1.0.0/16,10.64.0.15"), ["/Tunnels/0/PeerNetwork peer_network_overlap"]);
  assert.deepEqual(overlapAt("10.1.0.0/16", "10.2.0.0/16", "10.1.7.0/24"), [
    "/Tunnels/2/PeerNetwork peer_network_overlap",
  ]);
  assert.deepEqual(overlapAt("10.1.7.0/24", "10.0.0.0/9,172.16.0.0/12"), [
    "/Tunnels/1/PeerNetwork peer_network_overlap",
  ]);
  assert.throws(() => plan([to("10.1.0.0/16", 0), to("10.1.2.3", 1)]), {
    code: "peer_network_overlap",
    message: "PeerNetwork must not overlap that of Tunnels[0].",
  });
});

test("findOverlap agrees with a comparison of all pairs", () => {
  const block = fc.tuple(fc.integer({ min: 0, max: 31 }), fc.integer({ min: 27, max: 32 }));
  const lists = fc.array(fc.array(block, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 });
  const rangeOf = ([host, length]: [number, number]) => {
    const size = 2 ** (32 - length);
    return [host - (host % size), host - (host % size) + size - 1] as const;
  };
  fc.assert(
    fc.property(lists, (lists) => {
      const found = lists.some((list, index) =>
        list.some((one) =>
          lists
            .slice(0, index)
            .some((other) =>
              other.some((two) => rangeOf(one)[0] <= rangeOf(two)[1] && rangeOf(two)[0] <= rangeOf(one)[1]),
            ),
        ),
      );
      const inputs = lists.map((list, index) => ({
        ...laptop,
        Name: `t${index}`,
        PeerPublicKey: keyOf(index),
        PeerNetwork: list.map(([host, length]) => `10.0.0.${host}/${length}`).join(),
      }));
      assert.equal(problemsOf(inputs).length > 0, found);
    }),
  );
});

test("duplicates of unique fields, and keys that IKE cannot distinguish, are rejected", () => {
  const pair = (a: Partial<TunnelInput>, b: Partial<TunnelInput>) =>
    problemsOf([
      { ...office, ...a },
      {
        ...office,
        Name: "b",
        PeerNetwork: "10.1.0.0/16",
        PeerEndpoint: "b.example",
        SharedKey: undefined,
        ...b,
      } as TunnelInput,
    ]);
  assert.deepEqual(pair({}, {}), []);
  assert.deepEqual(pair({}, { Name: "office" }), ["/Tunnels/1/Name fields_conflict"]);
  const same = { PeerEndpoint: office.PeerEndpoint, SharedKey: office.SharedKey };
  assert.deepEqual(pair({}, same), ["/Tunnels/1/PeerIdentificator fields_conflict"]);
  const named = { PeerEndpoint: "VPN.example", PeerIdentificator: "X.example" };
  assert.deepEqual(pair(named, { ...same, PeerEndpoint: "vpn.example", PeerIdentificator: "x.EXAMPLE" }), [
    "/Tunnels/1/PeerIdentificator fields_conflict",
  ]);
  const alike = { PeerIdentificator: "x.example" };
  assert.deepEqual(pair(alike, { ...alike, SharedKey: office.SharedKey }), []);
  assert.deepEqual(pair(alike, alike), ["/Tunnels/1/SharedKey fields_conflict"]);
  assert.deepEqual(pair({ ...alike, SharedKey: "" }, { ...alike, SharedKey: "" }), [
    "/Tunnels/1/SharedKey fields_conflict",
  ]);
  assert.deepEqual(pair(alike, { ...alike, LocalIdentificator: "other.example" }), []);
  const caller = (name: string, IkeVersion: number) => ({ PeerEndpoint: "any", PeerIdentificator: name, IkeVersion });
  assert.deepEqual(pair(caller("a.example", 2), caller("b.example", 2)), []);
  assert.deepEqual(pair(caller("a.example", 1), caller("b.example", 2)), []);
  assert.deepEqual(pair(caller("a.example", 1), caller("b.example", 1)), ["/Tunnels/1/SharedKey fields_conflict"]);
  const peers = [laptop, { ...laptop, Name: "b", PeerNetwork: "10.9.0.3/32" }];
  assert.deepEqual(problemsOf(peers), ["/Tunnels/1/PeerPublicKey fields_conflict"]);
});
