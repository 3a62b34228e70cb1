/** Endpoints of webhooks: seven that take all, one that fails, two that never answer. Prints their addresses; `GET` says how many were taken. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

let taken = 0;
const take: RequestListener = (request, response) => {
  if (request.method === "GET") {
    response.end(String(taken));
    return;
  }
  request.resume().on("end", () => {
    taken += 1;
    response.writeHead(204).end();
  });
};
const fail: RequestListener = (request, response) =>
  void request.resume().on("end", () => response.writeHead(503).end());
const ignore: RequestListener = (request) => void request.resume();

const urls: string[] = [];
for (const answer of [take, take, take, take, take, take, take, fail, ignore, ignore]) {
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}
console.log(JSON.stringify(urls));
