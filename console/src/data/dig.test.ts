/** The command that queries the name server: its address, its port, and when there is none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { digOf } from "./dig.ts";

const commandOf = (Detail: string, Ok = true): string | undefined =>
  digOf([{ Name: "nameserver", Ok, Detail }], "example.com", "cloud.example.net")?.command;

test("the command has the address of the name server, and its port if it is not 53", () => {
  assert.equal(commandOf("127.0.0.1:5353"), "dig @127.0.0.1 -p 5353 example.com SOA");
  assert.equal(commandOf("192.0.2.53:53"), "dig @192.0.2.53 example.com SOA");
  assert.equal(commandOf("[2001:db8::53]:53"), "dig @2001:db8::53 example.com SOA");
});

test("a name server on all addresses is queried at the host of the console", () => {
  for (const all of ["0.0.0.0:53", "[::]:53"]) assert.equal(commandOf(all), "dig @cloud.example.net example.com SOA");
});

test("only an address of the host itself is local", () => {
  const isLocal = (Detail: string) => digOf([{ Name: "nameserver", Ok: true, Detail }], "a", "b")?.isLocal;
  assert.deepEqual(["127.0.0.1:53", "[::1]:53", "192.0.2.1:53"].map(isLocal), [true, true, false]);
});

test("without an address there is no command", () => {
  assert.equal(commandOf("The zones could not be loaded: disk full"), undefined);
  assert.equal(commandOf("127.0.0.1:5353", false), undefined);
  assert.equal(digOf([], "example.com", "localhost"), null);
});
