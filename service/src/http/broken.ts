/**
 * What node:http's parser refuses before there is a request: broken syntax, too many bytes, too little in too long a time. The
 * caller gets the same error object as everywhere else (docs/spec.md#order-of-checks, step 1), and a method that nobody has heard of is still told
 * what the path takes.
 */
import { ApiError } from "../base/error.ts";

/** What llhttp says: code, fixed sentence, the bytes it was reading and how far it got. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly reason?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

interface Sizes {
  readonly headers: number;
  readonly target: number;
  readonly body: number;
}

/** The line at which the parser stopped, as far as it came in the same packet. */
function brokenLine({ rawPacket, bytesParsed = 0 }: ParserError): string {
  if (rawPacket === undefined) return "";
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf("\n", bytesParsed - 1) + 1;
  const end = rawPacket.indexOf("\n", start);
  return rawPacket.toString("latin1", start, end < 0 ? rawPacket.length : end + 1);
}

/** Method and target of a request line whose method the parser does not know (RFC 9112 section 3); null: it is no such line. */
export function unknownMethod(error: ParserError): { method: string; target: string } | null {
  if (error.code !== "HPE_INVALID_METHOD") return null;
  const [, method, target] = /^([!#$%&'*+.^_`|~\w-]+) (\S+) HTTP\/1\.[01]\r?\n$/.exec(brokenLine(error)) ?? [];
  return method === undefined || target === undefined ? null : { method, target };
}

/** The fault for an error in a head. */
export function headError(error: ParserError, sizes: Sizes): ApiError {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new ApiError("request_timeout", "The head of the request did not arrive in time.");
  if (error.code === "HPE_HEADER_OVERFLOW") {
    const [, target = ""] = /^[A-Z-]+ ([^ ]*)/.exec(error.rawPacket?.toString("latin1") ?? "") ?? [];
    if (target.length > sizes.target)
      return new ApiError("path_not_readable", `The request target must not be longer than ${sizes.target} bytes.`);
    return new ApiError("headers_too_large", `All headers together must not be longer than ${sizes.headers} bytes.`);
  }
  if (error.reason === "Content-Length overflow")
    return new ApiError("body_too_large", `The body must not be longer than ${sizes.body} bytes.`);
  if (error.code === "HPE_INVALID_URL")
    return new ApiError(
      "path_not_readable",
      `The request target is not valid: ${error.reason ?? "it cannot be read"}.`,
    );
  return new ApiError(
    "request_not_readable",
    `The parser stopped at: ${error.reason ?? "something that it cannot read"}.`,
  );
}

/** The fault for an error in a body. */
export function bodyError(error: ParserError): ApiError {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new ApiError("request_timeout", "The body did not arrive in time.");
  return new ApiError("body_not_readable", `The body is not valid HTTP: ${error.reason ?? "it cannot be read"}.`);
}
