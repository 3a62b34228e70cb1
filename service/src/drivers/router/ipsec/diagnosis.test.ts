/** The log lines come from strongSwan 5.9.8 at either end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createDiagnosis, type Finding } from "./diagnosis.ts";

/** The last finding of these lines: `number name text`. */
function read(...lines: readonly string[]): Finding | null {
  const diagnosis = createDiagnosis();
  return lines
    .map((line) => {
      const [, number = "", name = "", msg = ""] = /^(\S+) (\S+) (.*)$/.exec(line) ?? [];
      return diagnosis.read({ "ikesa-uniqueid": number, "ikesa-name": name, msg });
    })
    .reduce((last, finding) => finding ?? last, null);
}

test("log lines of charon as the initiator", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["received AUTHENTICATION_FAILED notify error", "authentication_failed"],
    ["received NO_PROPOSAL_CHOSEN notify error", "no_proposal_chosen"],
    ["received NO_PROPOSAL_CHOSEN error notify", "no_proposal_chosen"],
    ["received NO_PROPOSAL_CHOSEN notify, no CHILD_SA built", "no_proposal_chosen"],
    ["received TS_UNACCEPTABLE notify, no CHILD_SA built", "selectors_refused"],
    ["received INVALID_ID_INFORMATION error notify", "selectors_refused"],
    ["IDir 'foo.example' does not match to '192.0.2.2'", "authentication_failed"],
    ["message parsing failed", "authentication_failed"],
    ["calculated HASH does not match HASH payload", "authentication_failed"],
    ["retransmit 1 of request with message ID 0", "peer_unreachable"],
    ["sending retransmit 1 of request message ID 0, seq 1", "peer_unreachable"],
    ["giving up after 3 retransmits", "peer_unreachable"],
    ["peer not responding, trying again (2/0)", "peer_unreachable"],
    ["unable to install IPsec policies (SPD) in kernel", "engine_unavailable"],
  ];
  for (const [line, fault] of rows) {
    const finding = read(`4 t-7 ${line}`);
    assert.deepEqual([finding?.tunnel, finding?.reason.fault], [7, fault], line);
  }
});

test("other log lines are no error", () => {
  const lines = [
    "4 t-7 initiating IKE_SA t-7[4] to 192.0.2.2",
    "4 t-7 selected proposal: IKE:AES_CBC_256/HMAC_SHA2_256_128/PRF_HMAC_SHA2_256/MODP_2048",
    "4 t-7 authentication of '192.0.2.2' with pre-shared key successful",
    "4 t-7 IKE_SA t-7[4] established between 192.0.2.1[192.0.2.1]...192.0.2.2[192.0.2.2]",
    "4 t-7 received DELETE for IKE_SA t-7[4]",
    "4 t-7 remote host is behind NAT",
  ];
  assert.equal(read(...lines), null);
});

test("a rejected peer is identified by its earlier lines", () => {
  assert.deepEqual(
    read(
      "9 (unnamed) 192.0.2.9 is initiating an IKE_SA",
      "9 (unnamed) received proposals: IKE:AES_CBC_128/HMAC_SHA2_256_128/PRF_HMAC_SHA2_256/MODP_2048",
      "9 (unnamed) configured proposals: IKE:AES_CBC_256/HMAC_SHA2_256_128/PRF_HMAC_SHA2_256/MODP_2048",
      "9 (unnamed) received proposals unacceptable",
    ),
    {
      tunnel: null,
      remote: "192.0.2.9",
      identity: "",
      reason: {
        fault: "no_proposal_chosen",
        detail: "The peer offers IKE:AES_CBC_128/HMAC_SHA2_256_128/PRF_HMAC_SHA2_256/MODP_2048.",
      },
      pair: null,
    },
  );
  const otherPeer = read(
    "9 (unnamed) 192.0.2.9 is initiating an IKE_SA",
    "9 (unnamed) looking for peer configs matching 192.0.2.1[192.0.2.1]...192.0.2.9[foo.example]",
    "9 (unnamed) no matching peer config found",
  );
  assert.deepEqual([otherPeer?.identity, otherPeer?.reason.fault], ["foo.example", "authentication_failed"]);
  assert.match(otherPeer?.reason.detail ?? "", /foo\.example/);
  const other = read("9 (unnamed) no IKE config found for 192.0.2.1...192.0.2.9, sending NO_PROPOSAL_CHOSEN");
  assert.deepEqual([other?.remote, other?.reason.fault], ["192.0.2.9", "no_proposal_chosen"]);
  const key = read("9 t-7 tried 1 shared key for '192.0.2.1' - 'foo.example', but MAC mismatched");
  assert.deepEqual([key?.tunnel, key?.reason.fault], [7, "authentication_failed"]);
  const networks = read("9 t-7 traffic selectors 10.99.0.0/24 === 10.24.1.0/24 unacceptable");
  assert.equal(networks?.reason.detail, "The peer wants 10.24.1.0/24 on its side and 10.99.0.0/24 on ours.");
  const quick = read("9 t-7 no matching CHILD_SA config found for 10.24.1.0/24 === 10.24.2.0/24");
  assert.equal(quick?.reason.fault, "selectors_refused");
});

test("the reason of a rejection stays until a new attempt", () => {
  const refused = ["4 t-7 initiating Main Mode IKE_SA t-7[4] to 192.0.2.2", "4 t-7 message parsing failed"];
  const silent = "4 t-7 retransmit 1 of request with message ID 0";
  assert.equal(read(...refused, silent)?.reason.fault, "authentication_failed");
  const again = "4 t-7 initiating Main Mode IKE_SA t-7[4] to 192.0.2.2";
  assert.equal(read(...refused, again, silent)?.reason.fault, "peer_unreachable");
});

test("charon logs the rejected blocks before the rejection, for each attempt", () => {
  const route = "4 t-7 error installing route with policy 10.24.1.2/32 === 10.24.2.0/24 out";
  const policies = "4 t-7 unable to install IPsec policies (SPD) in kernel";
  const finding = read("4 t-7 establishing CHILD_SA c-7{1}", route, policies);
  assert.deepEqual(finding?.pair, { local: "10.24.1.2/32", peer: "10.24.2.0/24" });
  assert.equal(finding.reason.detail, `The host could not install the tunnel: ${route.slice(6)}.`);
  assert.equal(read(route, "4 t-7 establishing CHILD_SA c-7{2}", policies)?.pair, null);
});

test("thousands of rejected peers use limited memory", () => {
  const diagnosis = createDiagnosis();
  for (let number = 0; number < 5000; number++)
    diagnosis.read({ "ikesa-uniqueid": `${number}`, "ikesa-name": "(unnamed)", msg: "x is initiating an IKE_SA" });
  const line = (number: string) => ({ "ikesa-uniqueid": number, msg: "received proposals unacceptable" });
  assert.equal(diagnosis.read(line("0"))?.remote, "");
  assert.equal(diagnosis.read(line("4999"))?.remote, "x");
});
