/** The operator enables IPv6 while networks exist and servers run: their IPv6 addresses work at once, and IPv4 is not interrupted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hindrance } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";
import { createRouterFixture } from "./routerfixture.ts";

if (hindrance !== null) console.log(`IPv6 brought on later: not tried, ${hindrance}`);

test("an existing network has IPv6 after the next start", { skip: hindrance ?? false }, async (t) => {
  const fixture = await createRouterFixture();
  t.after(() => fixture.close());
  const { lab } = fixture;
  const { Id } = await fixture.order("old");
  const { space, ip } = await fixture.plug(Id);
  const pings = (target: string, seconds = 1) =>
    lab.works(space, ["ping", "-n", "-c", "1", "-W", String(seconds), target]);
  assert.ok(await pings("198.18.0.2", 60));

  await fixture.restart({ ipv6: true });
  const network = await fixture.applied(Id);
  const [link] = network.LinkedServers;
  assert.ok(link && network.Gateway6);
  // As the server's next start would do.
  await lab.ip(space, [`addr add ${link.IP6}/64 dev eth0 nodad`, `route add default via ${network.Gateway6}`]);
  await until("the internet is reached by IPv6", () => pings("fd18::2"));
  assert.ok(await lab.works(lab.internet, ["ping", "-n", "-c", "1", "-W", "60", link.IP6]));
  assert.ok(await pings("198.18.0.2", 60), `${ip} still has a connection`);

  // Another program disables it, and the next run of the reconciler repairs it.
  await lab.run(fixture.edgeOf(Id), ["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"]);
  assert.equal(await pings("fd18::2"), false);
  await fixture.turn(Id);
  await until("it is repaired", () => pings("fd18::2"));
});
