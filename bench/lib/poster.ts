/** Sends `POST` requests to a URL for three seconds, a given number at a time, and prints how many per second were accepted. */
import { Agent, request as send } from "node:http";

const [url = "", count = "1", body = ""] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
const end = performance.now() + 3000;
let accepted = 0;

const post = (): Promise<void> =>
  new Promise((done, failed) => {
    const request = send(url, { method: "POST", agent, headers }, (response) => {
      response.resume().on("end", done);
    });
    request.on("error", failed).end(body);
  });

async function run(): Promise<void> {
  while (performance.now() < end) {
    await post();
    accepted += 1;
  }
}

const begun = performance.now();
await Promise.all(Array.from({ length: Number(count) }, run));
console.log(Math.round((accepted / (performance.now() - begun)) * 1000));
agent.destroy();
