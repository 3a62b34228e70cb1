/** Failures of the host in plain words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isSameError, plainCause, requestReference } from "./plaincause.ts";

test("a failure of a program becomes its subject and cause", () => {
  for (const [text, expected] of [
    [
      "ip netns exec brume-abc-7 dnsmasq --conf-file=/dev/null: dnsmasq: failed to bind DHCP server socket: Address already in use",
      "the DHCP server of the network failed: another program uses its port",
    ],
    [
      "nsenter --net=/run/netns/brume-abc-7 nft -f -: /dev/stdin:3:1-4: Error: syntax error, unexpected string",
      "the firewall of the network failed: the host does not support it",
    ],
    [
      "qemu-img convert -n disk-1/2.qcow2 whole.raw: qemu-img: error while writing: No space left on device",
      "the work on the disk failed: the disk of the host is full",
    ],
    [
      "ENOENT: no such file or directory, open '/var/lib/brume/servers/7/label.json'",
      "the host failed: something that it needs is missing on the host",
    ],
    ["QEMU did not open its monitor in 20000 ms", "the process of the server failed: it did not respond in time"],
    ["charon in brume-abc-7 did not start: no output", "the IPsec engine failed: it ended unexpectedly"],
    [
      "program e2fsck is not in /usr/sbin:/usr/bin",
      "the work on the disk failed: a program is not installed on the host",
    ],
    [
      'ip, at "link add b0abcu7 type veth": RTNETLINK answers: File exists',
      "the setup of the network failed: what it creates exists already",
    ],
    ["tc -batch -: Cannot find device", "the bandwidth limit failed: something that it needs is missing on the host"],
    ["unshare --mount: killed by SIGSYS", "the host failed: it ended unexpectedly"],
    ["/proc/7: 17", "the host failed: only the log of the host has the cause"],
  ] as const)
    assert.equal(plainCause(text, "request 1"), `${expected} (request 1)`, text);
});

test("a plain sentence stays as it is", () => {
  for (const text of [
    "its disk is damaged: layer 2.qcow2 is missing",
    "server 7 runs on version 2 of its disk",
    'The catalogue has no image "debian-12".',
    '"images.example.com" could not be read: connect ECONNREFUSED 192.0.2.1:443.',
    "the host already has a route to the network over another device: 10.64.0.0/16 dev eth1",
    "The peer agrees only to 10.1.0.0/24 on its side and 10.2.0.0/24 on ours.",
    "the host has no free disk space for server 7",
    "There is not enough space on the host for the image. Delete images or backups, then repeat the request.",
    "The host has 10 bytes of disk space for the 20 bytes of the image. Delete images or backups, then repeat the request.",
  ])
    assert.equal(plainCause(text, "request 1"), null, text);
});

test("errors are the same if they differ only in the id of the request", () => {
  const error = (reference: string) => JSON.stringify({ detail: `the host failed: ended (${reference}).`, step: null });
  const ids = ["5e1f02ab-77aa", "a-1"].map((id) => error(requestReference(id)));
  assert.equal(isSameError(ids[0] ?? "", ids[1] ?? ""), true);
  assert.equal(isSameError(error("request 5e1f02ab"), error("see the log of the host")), false);
  assert.deepEqual([isSameError(null, error("request 1")), isSameError(null, null)], [false, true]);
});
