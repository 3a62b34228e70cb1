/** Texts of the map of networks in English. */
import { plural } from "../plural.ts";

const count = plural("en");

export const map = {
  map: {
    label: "Map of networks",
    view: "View",
    views: { map: "Map", list: "List" },
    about: "The traffic of the last seconds. Each part leads to its page.",
    listAbout: "Networks with their tunnels, servers and the traffic of the last seconds.",
    outside: "Internet",
    outsideAbout: "and other networks",
    shared: "Shared network",
    kinds: { public: "Public", shared: "Shared", private: "Private" },
    more: (n: number) => count(n, { one: `${n} more server`, other: `${n} more servers` }),
    moreNetworks: (n: number) =>
      count(n, {
        one: `${n} more network is not shown here, only in the lists.`,
        other: `${n} more networks are not shown here, only in the lists.`,
      }),
    rate: (received: string, sent: string) => `↓ ${received}  ↑ ${sent}`,
    spoken: (received: string, sent: string) => `${received} in, ${sent} out`,
    tunnel: "Tunnel",
    noServers: "No server",
    legend: {
      title: "Legend",
      network: "Public or shared network",
      private: "Private network",
      server: "Server",
      tunnel: "Tunnel to another site",
      up: "Works",
      down: "Fails",
      off: "Off or waiting",
      still: "No traffic",
      traffic: "Traffic: the wider, the more",
      secure: "Tunnel without traffic",
    },
  },
};
