/** Reference for the benchmarks of the API: a node:http server that responds to each request with the same bytes. `bare.ts PORT BYTES`. */
import { createServer } from "node:http";

const [port, bytes] = process.argv.slice(2).map(Number);
const body = JSON.stringify({ text: "x".repeat(Math.max(0, (bytes ?? 0) - 11)) });
const headers = ["Content-Type", "application/json; charset=utf-8", "Content-Length", String(body.length)];

createServer((request, response) => {
  request.resume();
  response.writeHead(200, headers);
  response.end(body);
}).listen(port, "127.0.0.1");
