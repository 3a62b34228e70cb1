/** Limits for the networks of clients: how a flood is limited, and how real clients of the same network still get responses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, openDnsClient, query } from "../support/dnsclient.ts";
import { openServer, openStream } from "../support/dnstools.ts";
import { image, set } from "../support/zone.ts";

test("a network has a limit of all queries, also for different names", async () => {
  const limited = await openServer({ queryLimit: 20, limitLoopback: true });
  const names = Array.from({ length: 220 }, (_, i) => `n${i}.example.com`);
  await limited.publish([
    image(
      "example.com",
      1,
      names.map((name) => set(name, "A", "192.0.2.1")),
    ),
  ]);
  const flood = await openDnsClient((await limited.observe()).address);
  const answers = await Promise.all(names.map((name) => flood.exchange(query(name, 1), 1000)));
  const truncated = answers.filter((answer) => answer !== null && decode(answer).flag_tc).length;
  const silent = answers.filter((answer) => answer === null).length;
  const complete = 220 - truncated - silent;
  assert.ok(complete >= 20 && complete < 100, `${complete} complete responses`);
  assert.equal(truncated, Math.floor((220 - complete) / 16));
  flood.close();
  await limited.close();
});

test("a client over the rate gets every second response truncated, and no other", async () => {
  const limited = await openServer({ rateLimit: 20, limitLoopback: true });
  await limited.publish([image("example.com", 1, [set("www.example.com", "A", "192.0.2.1")])]);
  const flood = await openDnsClient((await limited.observe()).address);
  const answers = await Promise.all(
    Array.from({ length: 220 }, () => flood.exchange(query("www.example.com", 1), 1000)),
  );
  const truncated = answers.filter((answer) => answer !== null && decode(answer).flag_tc).length;
  const silent = answers.filter((answer) => answer === null).length;
  const complete = 220 - truncated - silent;
  assert.ok(complete >= 20 && complete < 100, `${complete} complete responses`);
  assert.ok(Math.abs(truncated - silent) <= 1, `${truncated} truncated, ${silent} dropped`);
  const stream = await openStream((await limited.observe()).address);
  stream.write(query("www.example.com", 1));
  assert.equal(decode((await stream.next()) as Buffer).answers.length, 1, "TCP is not limited");
  stream.socket.destroy();
  flood.close();
  await limited.close();
});
