/** Sends requests with unknown tokens without a pause, until it is killed: `guesses.ts URL CONNECTIONS`. Prints the rejections per second. */
import { randomBytes } from "node:crypto";
import { Agent, request as send } from "node:http";

const [url = "", connections = "20"] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
let refused = 0;

const guess = (): Promise<void> =>
  new Promise((done, failed) => {
    const headers = { authorization: `Bearer ${randomBytes(32).toString("hex")}` };
    const request = send(`${url}/dns`, { agent, headers }, (response) => {
      if (response.statusCode === 401) refused += 1;
      response.resume().on("end", done);
    });
    request.on("error", failed).end();
  });

for (let i = 0; i < Number(connections); i++)
  void (async () => {
    for (;;) await guess();
  })();
setInterval(() => {
  console.log(refused);
  refused = 0;
}, 1000);
