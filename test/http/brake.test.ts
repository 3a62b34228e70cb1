/** Requests with invalid tokens: a client network that sends many gets delayed responses; requests with valid tokens are not delayed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dial, type Line } from "../support/httpsocket.ts";
import { openLibrary, tokenOf } from "./fixture.ts";

const get = (token: string): string => `GET /book HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n\r\n`;
const unknown = "0".repeat(64);
const hour = 3_600_000;

test("beyond the burst a rejection is delayed, a valid token is not, and stopping ends the delay", async () => {
  const library = await openLibrary({ limits: { guesses: { burst: 2, pace: hour, longest: hour } } });
  const lines: Line[] = [];
  const open = async (source?: string): Promise<Line> => {
    const line = await dial(library.port, source);
    lines.push(line);
    return line;
  };
  const first = await open();
  for (let i = 0; i < 2; i++) {
    first.send(get(unknown));
    assert.equal((await first.receive()).status, 401);
  }
  const held = await open("127.0.0.7");
  const response: string[] = [];
  held.send(get(unknown));
  const refused = held.receive().then((answer) => {
    response.push("held");
    return answer;
  });
  // Its row is stored before it waits.
  while (!library.audit.some(({ address }) => address === "127.0.0.7")) await new Promise(setImmediate);
  for (let i = 0; i < 10; i++) {
    first.send(get(tokenOf("a")));
    assert.equal((await first.receive()).status, 200);
  }
  const other = await open("127.9.9.9");
  other.send(get(unknown));
  assert.equal((await other.receive()).status, 401, "another client network is not delayed");
  assert.deepEqual(response, []);
  const closed = library.http.close(5000);
  assert.equal((await refused).status, 401);
  await closed;
  await library.close();
  for (const line of lines) line.close();
});
