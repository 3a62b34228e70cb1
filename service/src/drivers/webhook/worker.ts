/** The thread that sends webhooks; see `thread.ts`. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type Command, collect, type Done } from "./protocol.ts";
import { createSender, type SenderOptions } from "./sender.ts";

function serve(port: MessagePort, options: Pick<SenderOptions, "allow" | "time">): void {
  const sender = createSender(options);
  const running = new Map<number, AbortController>();
  const report = collect<Done>((answers) => port.postMessage(answers));

  async function send({ id, message }: Extract<Command, { id: number }>): Promise<void> {
    const controller = new AbortController();
    running.set(id, controller);
    const answer = await sender.send(message, controller.signal);
    running.delete(id);
    report({ id, answer });
  }

  port.on("message", (commands: readonly Command[]) => {
    for (const command of commands) {
      if ("cancel" in command) running.get(command.cancel)?.abort();
      else void send(command);
    }
  });
}

if (parentPort !== null) serve(parentPort, workerData as Pick<SenderOptions, "allow" | "time">);
