/** Objects with the longest and strangest names that the service accepts, in all states: for pictures and for tests of the layout. */
import type { PageIds } from "./consolepages.ts";
import type { TestService } from "./testservice.ts";

/** Names in several scripts and directions, without and with blanks, of the greatest length, and code that must be text. */
const extremeNames = [
  "W".repeat(64),
  "nöch-ein-sehr-langer-name-ohne-jede-lücke-für-umbrüche-im-text-x",
  "сервер-для-резервного-копирования-бухгалтерии-и-документооборота",
  "Сервер для ежедневной репликации данных филиала в Екатеринбурге",
  "👩‍👩‍👧‍👦 🚀 release 🏳️‍🌈",
  "שרת הדפסה של המשרד",
  "خادم-الملفات-الرئيسي-1",
  "abc\u202efdp.exe",
  "'\"&amp;{{7*7}}${alert(1)} onerror=alert(1)",
  "日本語のサーバー名",
] as const;

export async function fillExtremes({ client, machines }: TestService): Promise<PageIds> {
  const [longest] = extremeNames;
  const labels = {
    "example.com/a-rather-long-key-of-a-label-that-fills-all-its-places": "v".repeat(63),
    stage: "production",
    empty: "",
  };
  const made = [];
  for (const Name of extremeNames)
    made.push(await client.createServer({ body: { Name, RAM: 256, HDD: 1, CPU: 1, Labels: labels } }, { wait: 60 }));
  const [first, second, third] = made;
  if (first === undefined || second === undefined || third === undefined) throw new Error("no server");
  await client.startAction({ path: { id: second.ID }, body: { Type: "PowerOff" } }, { wait: 60 });
  machines.trouble(third.ID, "IoError");
  // One creation fails, and one waits until the service ends.
  const release = machines.hold("ensureDisk");
  const failing = await client.createServer({ body: { Name: "fails-to-start" } });
  const [creation] = await client.listActions({ path: { id: failing.ID } });
  await client.cancelAction({ path: { id: failing.ID, actionID: creation?.ID ?? 0 } });
  release();
  await client.waitFor("readServer", { path: { id: failing.ID } }, { until: ({ State }) => State === "Failed" });
  machines.hold("ensureDisk");
  await client.createServer({ body: { Name: "waits-for-its-disk" } });

  const { Id: network } = await client.createPublicNetwork(
    { body: { Name: longest, Bandwidth: 10_000, Labels: labels } },
    { wait: 60 },
  );
  const { ID: privateNetwork } = await client.createNetwork(
    { body: { Name: extremeNames[3], CIDR: "172.16.9.0/24", Labels: labels } },
    { wait: 60 },
  );
  await client.configureFirewall({
    path: { id: network },
    body: {
      Rules: extremeNames.map((Name, index) => ({
        Name,
        Action: index % 2 === 0 ? ("Allow" as const) : ("Deny" as const),
        Protocol: "Tcp" as const,
        Source: "203.0.113.0/24",
        Destination: "internal",
        DestinationPort: "80,443,8080,8443,9000-9999,22,25,53,110",
      })),
    },
  });
  await client.configureVpn({
    path: { id: network },
    body: {
      Tunnels: extremeNames.slice(0, 5).map((Name, index) => ({
        Name,
        PeerNetwork: `10.${30 + index}.0.0/24`,
        PeerEndpoint: `203.0.113.${50 + index}`,
        SharedKey: "not-a-real-key-0001",
      })),
    },
  });
  const long = "a".repeat(63);
  await client.createReservation({ body: { Name: `${long}.${long}.${long}.example`, Labels: labels } });
  await client.createClaim({ body: { Name: `${long}.${long}.claim.example`, Labels: labels } });
  const domain = await client.createDomain({
    body: {
      Name: `${long}.${long}.example`,
      ZoneFile: [
        `${long} 300 IN A 192.0.2.1`,
        `@ 3600 IN TXT "${"x".repeat(255)}"`,
        `_sip._tcp 3600 IN SRV 10 5 5060 ${long}.${long}.example.net.`,
        `*.${long} 3600 IN CNAME ${long}.example.`,
        "",
      ].join("\n"),
    },
  });
  await client.createDomain({ body: { Name: "очень-длинное-имя-домена-для-проверки.испытание" } });
  const key = Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, 9)]).toString("base64");
  await client.createSshKey({ body: { Title: longest, PublicKey: `ssh-ed25519 ${key} ${"k".repeat(60)}` } });
  for (const Name of extremeNames.slice(0, 4)) {
    await client.createToken({
      body: { Name, Scopes: ["dns:write"], DomainID: domain.ID, RecordPattern: `_acme-challenge.${long}*` },
    });
    await client.createProject({ body: { Name } });
  }
  await client.createImage({ body: { Name: longest, ServerID: first.ID } }, { wait: 60 });
  const webhook = await client.createWebhook({
    body: { Url: `http://127.0.0.1:9/${"path/".repeat(60)}`, Types: ["domain.*"] },
  });
  return { server: first.ID, network, privateNetwork, domain: domain.ID, webhook: webhook.ID };
}
