/** Endpoints of webhooks: seven accept all requests, one fails, two never respond. Prints their URLs; `GET` returns the accepted number. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

let accepted = 0;
const accept: RequestListener = (request, response) => {
  if (request.method === "GET") {
    response.end(String(accepted));
    return;
  }
  request.resume().on("end", () => {
    accepted += 1;
    response.writeHead(204).end();
  });
};
const fail: RequestListener = (request, response) =>
  void request.resume().on("end", () => response.writeHead(503).end());
const ignore: RequestListener = (request) => void request.resume();

const urls: string[] = [];
for (const listener of [accept, accept, accept, accept, accept, accept, accept, fail, ignore, ignore]) {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}
console.log(JSON.stringify(urls));
