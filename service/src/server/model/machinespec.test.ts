import assert from "node:assert/strict";
import { test } from "node:test";
import { keyRow, networkRow, serverRow } from "../../../../test/support/rows.ts";
import type { LinkedNetwork } from "../links.ts";
import { showLink } from "../links.ts";
import { renderMachineSpec, uuidOf } from "./machinespec.ts";

const surroundings = {
  resolvers: ["192.0.2.53"],
  forwarders: [],
  closed: [],
};
const inside = { passwordHash: () => "$6$salt$hash", userData: null, keys: [keyRow(7)] };
const place = (id: number, ip: string, network = networkRow(5)): LinkedNetwork => ({
  network,
  link: {
    id,
    network_id: network.id,
    server_id: 17,
    host_name: "web-1",
    ip,
    bandwidth: 100,
    state: "Active",
    created: 0,
  },
});
const inner = networkRow(6, { kind: "private", first: "ac100000", last: "ac1000ff", gateway: null });
const render = (more = {}, places: readonly LinkedNetwork[] = [], around = {}) =>
  renderMachineSpec(serverRow(17, more), places, inside, { ...surroundings, ...around });
const fileOf = (machine: ReturnType<typeof render>, name: string): string =>
  String(machine.seed.find((file) => file.name === name)?.content);

interface RenderedNic {
  readonly addresses: readonly string[];
  readonly routes: readonly { readonly via: string; readonly metric: number }[];
}
const nicsOf = (machine: ReturnType<typeof render>): RenderedNic[] => {
  const config = JSON.parse(fileOf(machine, "network-config")) as { ethernets: Record<string, RenderedNic> };
  return Object.values(config.ethernets);
};

test("rows become the spec of a VM", () => {
  const { seed: _, ...machine } = render({ boot: 3, disk_version: 2, is_high_performance: 1 }, [place(31, "0a40000a")]);
  assert.deepEqual(machine, {
    id: 17,
    uuid: uuidOf(serverRow(17)),
    name: serverRow(17).name,
    owner: 1,
    boot: 3,
    cpus: 1,
    memory: 512,
    share: 2,
    disk: { version: 2, gb: 10 },
    nics: [{ id: 31, mac: "02:42:00:00:00:1f" }],
  });
  assert.match(machine.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(render(), render(), "to the letter");
});

test("the first link with a gateway has the default route, and after its removal the next one", () => {
  const machine = render({}, [
    place(30, "ac100002", inner),
    place(31, "0a40000a"),
    place(32, "0a40000b", networkRow(7)),
  ]);
  const routes = nicsOf(machine).map((nic) => [nic.addresses, nic.routes.map(({ via, metric }) => `${via} ${metric}`)]);
  assert.deepEqual(routes, [
    [["172.16.0.2/24"], []],
    [["10.64.0.10/29"], ["10.64.0.9 102"]],
    [["10.64.0.11/29"], ["10.64.0.9 103"]],
  ]);
});

test("with IPv6, each NIC has both addresses", () => {
  const first6 = "fd240001000000000000000000000000";
  const machine = render({}, [place(31, "0a40000a", networkRow(5, { first6 }))]);
  const [nic] = nicsOf(machine);
  assert.deepEqual(nic?.addresses, ["10.64.0.10/29", "fd24:1::2/64"]);
  assert.equal(nic?.routes[1]?.via, "fd24:1::1");
  assert.equal(showLink(place(31, "0a40000a", networkRow(5, { first6 }))).IP6, "fd24:1::2");
});

test("the edge router is the name server if it forwards, else the resolvers of the host are", () => {
  const servers = (around = {}, network = networkRow(5)) => {
    const found = /NAME_SERVERS='(.*)'/.exec(fileOf(render({}, [place(31, "0a40000a", network)], around), "seed.env"));
    return found?.[1];
  };
  assert.equal(servers(), "192.0.2.53");
  assert.equal(servers({ forwarders: ["192.0.2.1"] }), "10.64.0.9");
  assert.equal(servers({ forwarders: ["192.0.2.1"] }, inner), "192.0.2.53");
  const other = place(32, "0a400012", networkRow(7, { first: "0a400010", last: "0a400017", gateway: "0a400011" }));
  const both = render({}, [place(31, "0a40000a"), other], { forwarders: ["192.0.2.1"] });
  assert.match(fileOf(both, "seed.env"), /NAME_SERVERS='10\.64\.0\.9 10\.64\.0\.17'/);
});

test("another disk or server changes the instance id; a start or a resize does not", () => {
  const who = (more = {}, id = 17) =>
    fileOf(renderMachineSpec(serverRow(id, more), [], inside, surroundings), "meta-data");
  assert.equal(who({ boot: 9, cpu: 4 }), who());
  assert.notEqual(who({ disk_version: 2 }), who());
  assert.notEqual(who({}, 18), who());
});

test("the seed contains keys, hash and the administrator of the family", () => {
  const env = fileOf(render(), "seed.env");
  assert.match(env, /PASSWORD_HASH='\$6\$salt\$hash'/);
  assert.match(env, /SSH_KEYS='ssh-ed25519 AAAA\S+ ann@laptop'/);
  assert.match(fileOf(render({ family: "Windows" }), "user-data"), /"Administrator"/);
});

test("a seed is rendered when it is read, once: most calls of a driver do not need it", () => {
  let hashes = 0;
  const passwordHash = () => {
    hashes += 1;
    return "$6$salt$hash";
  };
  const spec = renderMachineSpec(serverRow(17), [], { ...inside, passwordHash }, surroundings);
  assert.equal(hashes, 0);
  assert.deepEqual(spec.seed, render().seed);
  assert.equal(spec.seed, spec.seed);
  assert.equal(hashes, 1);
});
