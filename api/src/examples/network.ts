/** Public network 5 with its firewall and its tunnel 3, and private network 6. */
import type { Firewall } from "../firewall.ts";
import type { Network, PublicNetwork } from "../network.ts";
import type { Tunnel } from "../vpn.ts";
import { date, type Examples, later } from "./example.ts";

const closed: Firewall = { Enabled: false, DefaultRuleAction: "Deny", Rules: [], ConfirmBy: null };
const web = {
  Name: "web",
  Action: "Allow",
  Protocol: "Tcp",
  Destination: "10.64.0.10",
  DestinationPort: "80,443",
} as const;
const out = { Name: "out", Action: "Allow", Protocol: "Any", Source: "internal", Destination: "external" } as const;

/** The firewall with the counters of the rules `web` and `out`. */
const webOnly = (hits: readonly [number, number], others: readonly [number, number]): Firewall => ({
  Enabled: true,
  DefaultRuleAction: "Deny",
  Rules: [
    {
      Number: 1,
      Name: "web",
      Action: "Allow",
      Protocol: "Tcp",
      Source: "any",
      SourcePort: "any",
      Destination: "10.64.0.10",
      DestinationPort: "80,443",
      Packets: hits[0],
      Bytes: hits[1],
      LastHit: hits[0] === 0 ? null : later,
    },
    {
      Number: 2,
      Name: "out",
      Action: "Allow",
      Protocol: "Any",
      Source: "internal",
      SourcePort: "any",
      Destination: "external",
      DestinationPort: "any",
      Packets: others[0],
      Bytes: others[1],
      LastHit: others[0] === 0 ? null : "2026-11-20T09:20:12.450Z",
    },
  ],
  ConfirmBy: null,
});

const peerConfig = "connections { brume-3 { version = 2 … } }";

const office: Tunnel = {
  Id: 3,
  State: "Active",
  Name: "office",
  Enabled: true,
  Mtu: 1400,
  EncryptionType: "Aes256",
  SharedKey: "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu",
  PeerNetwork: "10.0.0.0/24",
  PeerEndpoint: "203.0.113.50",
  PeerIdentificator: "203.0.113.50",
  Type: "IPsec",
  LocalNetwork: "10.64.0.8/29",
  LocalIdentificator: "10.64.255.2",
  IkeVersion: 2,
  DhGroup: 14,
  Digest: "Sha256",
  PerfectForwardSecrecy: true,
  PeerPublicKey: "",
  PublicKey: "",
  ListenPort: null,
  KeepAlive: null,
  PeerConfig: peerConfig,
  Labels: {},
};

const publicNetwork = (given: Partial<PublicNetwork> = {}): PublicNetwork => ({
  Id: 5,
  Name: "dmz",
  State: "Active",
  Mask: "255.255.255.248",
  Gateway: "10.64.0.9",
  CIDR: "10.64.0.8/29",
  EdgeExternalIp: "10.64.255.2",
  LinkedServers: [
    { LinkState: "Active", IP: "10.64.0.10", MAC: "02:42:00:00:00:20", ServerID: 17, LinkID: 32, IP6: "" },
  ],
  IsDHCP: true,
  DCLocation: "Local",
  NetworkCapacity: "29",
  Type: "PublicClient",
  Bandwidth: 100,
  Firewall: closed,
  Vpn: { Tunnels: [] },
  DateCreate: date,
  Generation: 1,
  AppliedGeneration: 1,
  Error: null,
  CIDR6: null,
  Gateway6: null,
  Labels: {},
  ...given,
});

const back = (given: Partial<Network> = {}): Network => ({
  ID: 6,
  Name: "back",
  State: "Active",
  Mask: "255.255.255.0",
  Gateway: "",
  Bandwidth: 1000,
  LinkedServers: [],
  IsDHCP: false,
  DCLocation: "Local",
  NetworkCapacity: "24",
  Type: "PrivateClient",
  CIDR: "172.16.0.0/24",
  DateCreate: date,
  Error: null,
  Labels: {},
  ...given,
});

/** Examples of the operations on networks, firewall and VPN. */
export const networkExamples: Examples = {
  listPublicNetworks: { answer: [publicNetwork()] },
  createPublicNetwork: {
    request: { NetworkCapacity: "29", Name: "dmz", Bandwidth: 100, DCLocation: "Local" },
    answer: publicNetwork({ State: "FromPool", LinkedServers: [], AppliedGeneration: 0 }),
  },
  readPublicNetwork: {
    path: [5],
    answer: publicNetwork({
      Firewall: webOnly([812, 70_231], [44, 3120]),
      Vpn: { Tunnels: [office] },
      Generation: 4,
      AppliedGeneration: 4,
    }),
  },
  updatePublicNetwork: {
    path: [5],
    request: { Bandwidth: 200, Name: "edge" },
    answer: publicNetwork({ Name: "edge", Bandwidth: 200, Generation: 2, AppliedGeneration: 2 }),
  },
  deletePublicNetwork: { path: [5] },
  configureVpn: {
    path: [5],
    request: {
      Tunnels: [
        {
          Name: "office",
          EncryptionType: "Aes256",
          SharedKey: "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu",
          PeerNetwork: "10.0.0.0/24",
          PeerEndpoint: "203.0.113.50",
          PeerIdentificator: "203.0.113.50",
          Mtu: 1400,
          Enabled: true,
        },
      ],
    },
    answer: publicNetwork({
      Firewall: webOnly([0, 0], [0, 0]),
      Vpn: { Tunnels: [office] },
      Generation: 4,
      AppliedGeneration: 4,
    }),
  },
  readVpnStatus: {
    path: [5],
    answer: [
      {
        TunnelId: 3,
        Operational: true,
        State: "Up",
        Error: null,
        EstablishedAt: later,
        BytesIn: 104_857,
        BytesOut: 98_112,
        LastSeen: "2026-11-20T09:20:12.450Z",
        LocalSubnets: ["10.64.0.8/29"],
        PeerSubnets: ["10.0.0.0/24"],
        PeerAddress: "203.0.113.50",
        Proposal: "AES_CBC_256/HMAC_SHA2_256_128/MODP_2048",
      },
    ],
  },
  readTunnelPeer: { path: [5, 3], answer: { Peer: "strongswan", Config: peerConfig, Qr: "" } },
  issueTunnelPeer: { path: [5, 3], answer: { Peer: "strongswan", Config: peerConfig, Qr: "" } },
  configureFirewall: {
    path: [5],
    request: { Enabled: true, DefaultRuleAction: "Deny", Rules: [web, out] },
    answer: publicNetwork({ Firewall: webOnly([0, 0], [0, 0]), Generation: 3, AppliedGeneration: 3 }),
  },
  checkFirewall: {
    path: [5],
    request: { Protocol: "Tcp", Source: "203.0.113.5", Destination: "10.64.0.10", DestinationPort: 443 },
    answer: {
      Verdict: "Allow",
      Rule: 1,
      Reason: "Rule 1 (web) is the first that matches, and its Action is Allow.",
    },
  },
  listNetworks: { answer: [back()] },
  readNetwork: { path: [6], answer: back() },
  createNetwork: { request: { Name: "back", DCLocation: "Local", IsDHCP: false }, answer: back() },
  updateNetwork: {
    path: [6],
    request: { Name: "rear", Labels: { team: "web" } },
    answer: back({ Name: "rear", Labels: { team: "web" } }),
  },
  deleteNetwork: { path: [6] },
};
