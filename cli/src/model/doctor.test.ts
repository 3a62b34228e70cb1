import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeCertificate, judgeLinger, judgePort, judgeUpgrade } from "./doctor.ts";

const sockets = `UNCONN 0 0 127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=1,fd=12))
UNCONN 0 0 127.0.0.1:5353 0.0.0.0:* users:(("node",pid=2,fd=20))`;

test("another address than port 53 of the host is a warning that names the program on port 53", () => {
  assert.equal(judgePort("192.0.2.53:53", "").State, "ok");
  assert.match(judgePort("127.0.0.1:5353", sockets).Detail, /listens on 127\.0\.0\.1:5353.* used by systemd-resolve /);
  assert.equal(judgePort("127.0.0.1:53", "").State, "warning");
  assert.doesNotMatch(judgePort("192.0.2.53:5353", "UNCONN 0 0 1.2.3.4:5300 0.0.0.0:*").Detail, /used by/);
});

test("an upgrade waits for a restart if version or code differ", () => {
  assert.equal(judgeUpgrade("1.0.0", "1.0.0", 10, 5).State, "ok");
  assert.equal(judgeUpgrade("1.0.0", "1.0.0", null, 5).State, "ok");
  assert.match(judgeUpgrade("1.0.0", "1.0.0", 10, 15).Detail, /newer than the running service/);
  assert.match(judgeUpgrade("1.0.0", "1.1.0", 10, 5).Detail, /Version 1\.0\.0 runs, and 1\.1\.0 is installed/);
});

test("without lingering, processes may end at the logout", () => {
  assert.equal(judgeLinger("Linger=yes\n").State, "ok");
  assert.equal(judgeLinger("Linger=no\n").Remedy, "loginctl enable-linger");
});

test("a certificate is a problem when its last days have come, in proportion if it is short", () => {
  const day = 86_400_000;
  const judge = (valid: number, left: number) => judgeCertificate(0, valid * day, (valid - left) * day).State;
  assert.deepEqual([judge(90, 30), judge(90, 13), judge(90, -1)], ["ok", "problem", "problem"]);
  assert.deepEqual([judge(6, 2), judge(6, 0.5), judge(365, 20)], ["ok", "problem", "ok"]);
  const detail = (left: number) => judgeCertificate(0, 90 * day, (90 - left) * day).Detail;
  assert.equal(detail(2.5), "The certificate expires in 2 days.");
  assert.equal(detail(-2.5), "The certificate has expired.");
});
