/** The pages of the console, for its pictures and for the tests that visit all of them. */
export interface PageIds {
  readonly server: number;
  readonly network: number;
  readonly privateNetwork: number;
  readonly domain: number;
  readonly webhook: number;
}

/** Returns the address of each page, with each of its tabs and the dialogs that have an address, by a short name. */
export const consolePages = ({ server, network, privateNetwork, domain, webhook }: PageIds) =>
  ({
    overview: "/console/",
    servers: "/console/servers",
    "server-create": "/console/servers/create",
    server: `/console/servers/${server}`,
    "server-metrics": `/console/servers/${server}?tab=metrics`,
    "server-console": `/console/servers/${server}?tab=console`,
    "server-screen": `/console/servers/${server}?tab=screen`,
    "server-log": `/console/servers/${server}?tab=log`,
    "server-backups": `/console/servers/${server}?tab=backups`,
    "server-settings": `/console/servers/${server}?tab=settings`,
    networks: "/console/networks",
    "networks-private": "/console/networks?tab=private",
    "networks-map": "/console/networks?tab=map",
    "network-create": "/console/networks?create=public",
    network: `/console/networks/${network}`,
    "network-firewall": `/console/networks/${network}?tab=firewall`,
    "network-vpn": `/console/networks/${network}?tab=vpn`,
    "network-settings": `/console/networks/${network}?tab=settings`,
    "network-private": `/console/networks/private/${privateNetwork}`,
    domains: "/console/dns",
    "domain-create": "/console/dns?create=1",
    claims: "/console/dns?tab=claims",
    claim: "/console/dns?tab=claims&claim=1",
    "claim-create": "/console/dns?tab=claims&create=1",
    withdrawn: "/console/dns?tab=withdrawn",
    reserved: "/console/dns?tab=reserved",
    records: `/console/dns/${domain}`,
    "domain-history": `/console/dns/${domain}?tab=history`,
    "domain-setup": `/console/dns/${domain}?tab=setup`,
    "domain-settings": `/console/dns/${domain}?tab=settings`,
    images: "/console/images",
    "image-add": "/console/images?create=1",
    activity: "/console/activity",
    audit: "/console/activity/audit",
    webhooks: "/console/activity/webhooks",
    webhook: `/console/activity/webhooks/${webhook}`,
    tokens: "/console/access",
    keys: "/console/access?tab=keys",
    sessions: "/console/access?tab=sessions",
    projects: "/console/access?tab=projects",
    host: "/console/host",
    "host-settings": "/console/host?tab=settings",
  }) as const;

export type PageName = keyof ReturnType<typeof consolePages>;
