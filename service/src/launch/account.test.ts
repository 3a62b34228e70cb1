/** The user of the control plane in /etc/passwd. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findAccount } from "./account.ts";

test("the ids of the user are found, and root is never it", () => {
  const others = "root:x:0:0:root:/root:/bin/sh\nbrume2:x:7:7::/:/bin/sh\n";
  assert.deepEqual(findAccount(`${others}brume:x:995:994::/nonexistent:/usr/sbin/nologin\n`), { uid: 995, gid: 994 });
  assert.equal(findAccount(others), null);
  for (const line of ["brume:x:0:995::/:/bin/sh", "brume:x:995:0::/:/bin/sh", "brume:x:x:1::/:/bin/sh", "brume"])
    assert.equal(findAccount(`${others}${line}\n`), null);
});
