/** One request for nearly every changing operation, in an order in which all succeed. */
import type { OperationName } from "@brume/api/contract.ts";
import { type ChangeInput, recordTypes } from "@brume/api/dns.ts";
import type { TestService } from "../support/testservice.ts";
import { prepareRequests } from "./dryrun.ts";

/** With a cookie in `headers` the request has no token. */
export type ChangeRequest = readonly [
  name: OperationName,
  target: string,
  body?: object,
  headers?: Readonly<Record<string, string>> | undefined,
];

const fields = {
  A: { Name: "a1", IP: "192.0.2.1" },
  AAAA: { Name: "a6", IP: "2001:db8::1" },
  CNAME: { MnemonicName: "alias", Name: "a.b" },
  MX: { HostName: "mail" },
  NS: { HostName: "cut", Name: "a.b" },
  SRV: { Service: "sip", Proto: "tcp", Port: 1, Target: "a.b" },
  TXT: { Name: "text", Text: "a" },
} as const;
const others = { CNAME: { MnemonicName: "alias2" }, NS: { HostName: "cut2" }, MX: { HostName: "mail2" } } as const;

/** Creates the objects and returns the requests. */
export async function changesOf(brume: TestService): Promise<ChangeRequest[]> {
  const { client } = brume;
  const ofMachines = await prepareRequests({ client, brume });
  const domain = await client.createDomain({ body: { Name: "remembered.example" } });
  const deletable = await client.createDomain({ body: { Name: "doomed.example" } });
  const Changes: ChangeInput[] = recordTypes.map((TypeRecord) => ({ Op: "Create", TypeRecord, ...fields[TypeRecord] }));
  const { Records } = await client.changeRecords({ path: { id: domain.ID }, body: { Changes } });
  const idOf = (type: string) => Records.find(({ After }) => After?.TypeRecord === type)?.After?.ID ?? 0;
  const deletableRecord = await client.createRecordA({ body: { DomainId: domain.ID, Name: "spare", IP: "192.0.2.9" } });
  const [version] = await client.listVersions({ path: { id: domain.ID } });
  const project = await client.createProject({ body: { Name: "doomed" } });
  const token = await client.createToken({ body: { Name: "doomed", Scopes: ["dns:read"] } });
  const webhook = await client.createWebhook({ body: { Url: "http://127.0.0.1:9/doomed" } });
  const dns = `/dns/${domain.ID}`;
  return [
    ["createWebhook", "/webhook", { Url: "http://127.0.0.1:9/" }],
    ["createDomain", "/dns", { Name: "new.example", Ip: "192.0.2.1" }],
    ["updateDomain", dns, { Labels: { a: "b" } }],
    ...recordTypes.flatMap((type): ChangeRequest[] => {
      const path = `/dns/record${type.toLowerCase()}`;
      const more = others[type as keyof typeof others] ?? { Name: `new-${type.toLowerCase()}` };
      return [
        [`createRecord${type}`, path, { DomainId: domain.ID, ...fields[type], ...more }],
        [`updateRecord${type}`, `${path}/${idOf(type)}`, { TTL: 77 }],
      ];
    }),
    ["changeRecords", `${dns}/changeset`, { Changes: [{ Op: "Update", ID: idOf("A"), TTL: 5 }] }],
    ["importZone", `${dns}/zonefile`, { ZoneFile: "file A 192.0.2.1\n", Mode: "Merge" }],
    ["deleteRecord", `${dns}/${deletableRecord.ID}`],
    ["restoreVersion", `${dns}/restore`, { Serial: version?.Serial }],
    ["deleteDomain", `/dns/${deletable.ID}`],
    ["createProject", "/project", { Name: "new" }],
    // The caller's own, whose quotas and names its reads show.
    ["updateProject", "/project/1", { Name: "renamed" }],
    ["deleteProject", `/project/${project.ID}`],
    ["createToken", "/token", { Name: "new", Scopes: ["dns:read"] }],
    ["deleteToken", `/token/${token.ID}`],
    ...Object.entries(ofMachines).map(
      ([name, [target, body, headers]]): ChangeRequest => [name as OperationName, target, body ?? {}, headers],
    ),
    ["deleteWebhook", `/webhook/${webhook.ID}`],
  ];
}
