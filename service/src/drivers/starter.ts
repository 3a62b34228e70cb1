/**
 * Process that starts the children of the service. A fork copies the page tables of the forking process and blocks it until the child
 * runs; in the service itself this would block all requests for ten milliseconds or more. `exec.ts` runs it and sends requests as
 * messages. It ends with its parent; detached children continue. For the agent, the supervisor does the same.
 */
import { createChildren, type StartRequest } from "./children.ts";

const children = createChildren(
  (report) => void process.send?.(report, undefined, {}, () => {}),
  async (byNode) => (await import("./quickstart.ts")).loadQuickStart(byNode),
);
process.on("disconnect", () => {
  children.end();
  process.exit();
});
process.on("message", (request: StartRequest) => children.handle(request));
