/**
 * The request and response examples of the specification, byte for byte: existing clients search the raw text of responses and compare
 * sentences. The test creates and deletes earlier objects so that ids match, and replaces dates and serials by those of the examples.
 */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Caller, onSqlite } from "../support/harness.ts";

const date = "2026-11-20T09:15:00.120Z";
const expiry = "2999-11-20T00:00:00.000Z";

/** Returns the response text with the dates and serials of the examples. */
const likeWritten = (text: string): string =>
  text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (found) =>
      found === expiry || found.startsWith("9999") ? found : date,
    )
    .replaceAll(/"Serial":\d{10}/g, '"Serial":1795166100');

const a = (ip: string, ttl: number) =>
  `{"ID":8,"TypeRecord":"A","IP":"${ip}","HostName":"www.example.com.","Priority":"","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"${date}","Service":"","Proto":"","Weight":"","TTL":${ttl},"Port":"","Target":"","CanonicalDescription":"www.example.com. ${ttl} IN A ${ip}","PunyName":"www.example.com.","DomainID":3,"Labels":{}}`;
const aaaa = (ip: string) =>
  `{"ID":9,"TypeRecord":"AAAA","IP":"${ip}","HostName":"@","Priority":"","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"${date}","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"@ 3600 IN AAAA ${ip}","PunyName":"@","DomainID":3,"Labels":{}}`;
const cname = (target: string) =>
  `{"ID":10,"TypeRecord":"CNAME","IP":"","HostName":"${target}","Priority":"","Text":"","MnemonicName":"blog.example.com.","ExtHostName":"","State":"Active","DateCreate":"${date}","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"blog.example.com. 3600 IN CNAME ${target}","PunyName":"blog.example.com.","DomainID":3,"Labels":{}}`;
const mx = (priority: string) =>
  `{"ID":11,"TypeRecord":"MX","IP":"","HostName":"@","Priority":"${priority}","Text":"","MnemonicName":"","ExtHostName":"mail.example.com.","State":"Active","DateCreate":"${date}","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"@ 3600 MX ${priority} mail.example.com.","PunyName":"@","DomainID":3,"Labels":{}}`;
const ns = (ttl: number) =>
  `{"ID":12,"TypeRecord":"NS","IP":"","HostName":"lab.example.com.","Priority":"","Text":"","MnemonicName":"","ExtHostName":"ns.example.net.","State":"Active","DateCreate":"${date}","Service":"","Proto":"","Weight":"","TTL":${ttl},"Port":"","Target":"","CanonicalDescription":"lab.example.com. ${ttl} IN NS ns.example.net.","PunyName":"lab.example.com.","DomainID":3,"Labels":{}}`;
const srv = (weight: string, port: string) =>
  `{"ID":13,"TypeRecord":"SRV","IP":"","HostName":"@","Priority":"20","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"${date}","Service":"_xmpp-client.","Proto":"tcp","Weight":"${weight}","TTL":3600,"Port":"${port}","Target":"chat.example.com.","CanonicalDescription":"_xmpp-client._tcp.example.com. 3600 IN SRV 20 ${weight} ${port} chat.example.com.","PunyName":"@","DomainID":3,"Labels":{}}`;
const txt = (text: string) =>
  `{"ID":14,"TypeRecord":"TXT","IP":"","HostName":"_acme-challenge.example.com.","Priority":"","Text":"\\"${text}\\" ","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"${date}","Service":"","Proto":"","Weight":"","TTL":60,"Port":"","Target":"","CanonicalDescription":"_acme-challenge.example.com. 60 IN TXT \\"${text}\\"","PunyName":"_acme-challenge.example.com.","DomainID":3,"Labels":{}}`;
const domain = (...records: string[]) =>
  `{"ID":3,"Name":"example.com","NamePunyCode":"example.com","TechName":"example_com","State":"Active","DateCreate":"${date}","IsDelegate":false,"LinkedRecords":[${records.join(",")}],"NameServers":["ns1.brume.internal"],"Serial":1795166100,"Import":null,"Delegation":"Unknown","Labels":{}}`;
const token = (value: string) =>
  `{"ID":2,"Name":"acme","Token":"${value}","Scopes":["dns:read","dns:write"],"ProjectID":1,"DomainID":3,"RecordPattern":"_acme-challenge*","RecordTypes":["TXT"],"ExpiresAt":"${expiry}","RateLimit":null,"DateCreate":"${date}","LastUsedAt":null,"AllowedFrom":null,"Labels":{}}`;
const quotas = (servers: number) =>
  `{"Servers":${servers},"CPU":200,"RAM":262144,"HDD":4096,"PublicNetworks":50,"PrivateNetworks":100,"Domains":1000,"RecordsPerDomain":10000,"FirewallRules":500,"Tunnels":50,"SshKeys":100,"Images":50,"Tokens":100,"Webhooks":10}`;
const usage = (domains: number, tokens: number) =>
  `{"Servers":0,"CPU":0,"RAM":0,"HDD":0,"PublicNetworks":0,"PrivateNetworks":0,"Domains":${domains},"SshKeys":0,"Images":0,"Tokens":${tokens},"Webhooks":0}`;
const project = (id: number, name: string, servers: number, used: string) =>
  `{"ID":${id},"Name":"${name}","IsBlocked":false,"Balances":{"Real":0,"Bonus":0,"Test":0},"Quotas":${quotas(servers)},"Usage":${used},"DateCreate":"${date}","Labels":{}}`;

const id = "01JD4QK7Z8S3";

onSqlite("the examples", (harness) => {
  let acme: Caller;

  async function expectResponse(
    caller: Caller,
    line: string,
    body: string | undefined,
    wanted: string,
    status = 200,
  ): Promise<void> {
    const response = await caller.request(line, body, { "X-Request-Id": id });
    assert.equal(likeWritten(response.text), wanted);
    assert.equal(response.status, status);
    assert.equal(response.headers.get("x-request-id"), id);
  }
  function example(line: string, body: string | undefined, wanted: string, status = 200): void {
    test(status === 200 ? line : `${line} is ${status}`, () => expectResponse(harness, line, body, wanted, status));
  }

  before(async () => {
    for (const name of ["one.example", "two.example"]) {
      const { ID } = await harness.client.createDomain({ body: { Name: name } });
      await harness.client.deleteDomain({ path: { id: ID } });
    }
  });

  example(
    "GET /account",
    undefined,
    `{"ID":1,"FirstName":"","LastName":"","Email":"","Balance":0,"BalanceTillDateUtc":"9999-12-31T23:59:59.999Z","ProjectsBalance":[{"ProjectId":1,"Balance":{"Real":0,"Bonus":0,"Test":0}}],"Projects":[{"ID":1,"Name":"default","IsBlocked":false}],"Token":{"ID":1,"Name":"first","Scopes":["server:read","server:write","dns:read","dns:write","network:read","network:write","account:admin","metrics:read"],"ProjectID":1,"DomainID":null}}`,
  );
  example("GET /customer/balance", undefined, "0");
  example("POST /dns", '{"Name":"example.com"}', domain());
  example("GET /project", undefined, project(1, "default", 100, usage(1, 1)));
  example("POST /project", '{"Name":"team-b","Quotas":{"Servers":20}}', project(2, "team-b", 20, usage(0, 0)));

  test("POST /token", async () => {
    const body = `{"Name":"acme","Scopes":["dns:read","dns:write"],"DomainID":3,"RecordPattern":"_acme-challenge*","RecordTypes":["TXT"],"ExpiresAt":"2999-11-20T00:00:00Z"}`;
    const response = await harness.request("POST /token", body);
    const value = (response.json as { Token: string }).Token;
    assert.match(value, /^[0-9a-f]{64}$/);
    assert.equal(likeWritten(response.text), token(value));
    acme = harness.callerOf(value);
    await expectResponse(harness, "GET /token/2", undefined, token(""));
  });

  test("seven records are created and deleted before the first example", async () => {
    const Changes = Array.from({ length: 7 }, (_, i) => ({
      Op: "Create" as const,
      TypeRecord: "A" as const,
      Name: `burn${i}`,
      IP: "192.0.2.1",
    }));
    const { Records } = await harness.client.changeRecords({ path: { id: 3 }, body: { Changes } });
    const gone = Records.map(({ After }) => ({ Op: "Delete" as const, ID: After?.ID ?? 0 }));
    await harness.client.changeRecords({ path: { id: 3 }, body: { Changes: gone } });
  });

  example("POST /dns/recorda", '{"DomainId":"3","IP":"10.63.0.2","Name":"www","TTL":"3600"}', a("10.63.0.2", 3600));
  example("POST /dns/recordaaaa", '{"DomainId":3,"IP":"2001:0DB8::17","Name":"@"}', aaaa("2001:db8::17"));
  example("PUT /dns/recordaaaa/9", '{"DomainId":3,"IP":"2001:db8::18"}', aaaa("2001:db8::18"));
  example("POST /dns/recordcname", '{"DomainId":3,"Name":"@","MnemonicName":"blog"}', cname("@"));
  example(
    "PUT /dns/recordcname/10",
    '{"DomainId":3,"Name":"pages.example.net","MnemonicName":"blog"}',
    cname("pages.example.net."),
  );
  example("POST /dns/recordmx", '{"DomainId":3,"HostName":"mail.example.com","Priority":"10"}', mx("10"));
  example("PUT /dns/recordmx/11", '{"DomainId":3,"HostName":"mail","Priority":20}', mx("20"));
  example("POST /dns/recordns", '{"DomainId":3,"HostName":"lab","Name":"ns.example.net"}', ns(3600));
  example("PUT /dns/recordns/12", '{"DomainId":3,"HostName":"lab","Name":"ns.example.net","TTL":600}', ns(600));
  example(
    "POST /dns/recordsrv",
    '{"DomainId":3,"Service":"xmpp-client","Proto":"tcp","Name":"@","Priority":"20","Weight":"0","Port":"5222","Target":"chat.example.com"}',
    srv("0", "5222"),
  );
  example(
    "PUT /dns/recordsrv/13",
    '{"DomainId":3,"Service":"_xmpp-client.","Proto":"tcp","Name":"@","Priority":"20","Weight":"5","Port":"5223","Target":"chat"}',
    srv("5", "5223"),
  );
  test("POST /dns/recordtxt with the token for certificates", async () => {
    const body = '{"DomainId":"3","TTL":60,"Name":"_acme-challenge.example.com","Text":"abc"}';
    await expectResponse(acme, "POST /dns/recordtxt", body, txt("abc"));
  });
  example(
    "POST /dns/recordtxt",
    '{"DomainId":3,"Name":"_ACME-challenge","Text":"\\"abc\\"","TTL":5}',
    `{"Message":"The record already exists.","ModelState":{"":["Подобная запись для данного домена уже существует"]},"type":"/docs#record_exists","title":"The record already exists.","status":400,"detail":"Record 14 of domain 3 has the same type, name and data.","instance":"urn:brume:request:${id}","code":"record_exists","errors":[{"pointer":"","code":"record_exists","detail":"Подобная запись для данного домена уже существует"}]}`,
    400,
  );
  test("GET /event", async () => {
    const response = await harness.request("GET /event?resource=record:14&type=record.created");
    const number = (response.json as { ID: number }[])[0]?.ID;
    const wanted = `[{"ID":${number},"Type":"record.created","Date":"${date}","ProjectID":1,"Resource":"record","ResourceID":14,"ParentID":3,"TokenID":2,"RequestID":"${id}","Data":${txt("abc")}}]`;
    assert.equal(likeWritten(response.text), wanted);
  });

  for (const number of [9, 10, 11, 12, 13]) example(`DELETE /dns/3/${number}`, undefined, "");
  example("GET /dns/record/8", undefined, a("10.63.0.2", 3600));
  example("GET /dns/3", undefined, domain(a("10.63.0.2", 3600), txt("abc")));
  example(
    "PUT /dns/recorda/8",
    '{"DomainId":"3","IP":"10.63.0.3","Name":"www.example.com","TTL":300}',
    a("10.63.0.3", 300),
  );
  example("DELETE /dns/3/8", undefined, "");
  example("GET /dns", undefined, `[${domain(txt("abc"))}]`);
  example("PUT /dns/recordtxt/14", '{"DomainId":"3","Name":"_acme-challenge","TTL":"60","Text":"def"}', txt("def"));

  example(
    "GET /dns/999",
    undefined,
    `{"Message":"Domain not found","type":"/docs#domain_not_found","title":"Domain not found","status":404,"detail":"There is no domain 999 in this project.","instance":"urn:brume:request:${id}","code":"domain_not_found","errors":[]}`,
    404,
  );
  test("an unknown token", async () => {
    const wanted = `{"Message":"Authorization has been denied for this request.","type":"/docs#token_invalid","title":"Authorization has been denied for this request.","status":401,"detail":"The token is not known.","instance":"urn:brume:request:${id}","code":"token_invalid","errors":[]}`;
    await expectResponse(harness.callerOf("0".repeat(64)), "GET /dns", undefined, wanted, 401);
  });
  example("GET /healthz", undefined, '{"Status":"ok"}');
  test("GET /readyz", async () => {
    const wanted = `{"Status":"ready","Checks":[{"Name":"database","Ok":true,"Detail":"${harness.kind}"},{"Name":"machine","Ok":true,"Detail":"sim: no machine runs"},{"Name":"disk","Ok":true,"Detail":"not watched"},{"Name":"router","Ok":true,"Detail":"sim: no packet flows"},{"Name":"nameserver","Ok":true,"Detail":"${harness.brume.dns}"}]}`;
    await expectResponse(harness, "GET /readyz", undefined, wanted);
  });
});
