import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandError, type Exec, exec } from "../../exec.ts";
import { describeObstacle, detect } from "./detect.ts";

/** A host on which the commands with these words fail. */
const hostWithout = (...words: readonly string[]): Exec => ({
  ...exec,
  async run(argv, { stdin = "" } = {}) {
    const text = `${argv.join(" ")} ${typeof stdin === "string" ? stdin : ""}`;
    if (words.some((word) => text.includes(word)))
      throw new CommandError(argv, 1, `${argv[0]}: Operation not permitted\n  at line 3`, "");
    return "";
  },
});

test("each trial that failed states what is not available, why, and what to do, and no command", async () => {
  for (const word of ["netns add", "veth", "ifb", "table inet t", "table bridge", "table inet n", "dnsmasq", "xfrm"]) {
    const errors: unknown[] = [];
    const { trials } = await detect(hostWithout(word), "trial", (_level, _text, detail) => errors.push(detail));
    const failed = trials.filter(({ works }) => !works);
    assert.equal(failed.length, errors.length, word);
    assert.ok(failed.length > 0, word);
    for (const { detail } of failed)
      assert.match(detail, /^[A-Z][\w ]+: the host does not permit it\. (?:Run as root: |Start Brume )[^\n]+$/);
  }
});

test("a host without networks is described by a trial that they need", async () => {
  const { router, trials } = await detect(hostWithout("xfrm", "table bridge"), "trial");
  assert.equal(router, false);
  assert.equal(
    describeObstacle(trials),
    "the host does not permit it. Run as root: modprobe -a nf_tables nft_meta_bridge",
  );
});
