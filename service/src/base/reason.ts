/** The reason of a failure as the end of a sentence for clients and operators. */
import { plainCause } from "./plaincause.ts";

/** Longest reason, in characters. */
const mostCharacters = 300;

/**
 * Returns the message of the error without its dot. A message that names something of the host, or has several lines, is replaced by its
 * cause, and an empty one by where the cause is.
 */
export function reasonOf(error: unknown): string {
  const message = (error instanceof Error ? error.message : typeof error === "string" ? error : "").trim();
  const plain = plainCause(message, "the log of the service has more") ?? message;
  return plain.slice(0, mostCharacters).replace(/\.$/, "") || "only the log of the service has the cause";
}
