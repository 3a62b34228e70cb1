/**
 * Converts errors of the parser of node:http to API errors: invalid syntax, too many bytes, timeouts. The client gets the usual error
 * object (docs/spec.md#order-of-checks, step 1). For an unknown method the response still contains the methods of the path.
 */
import { ApiError } from "../base/error.ts";

/** An error of llhttp: code, fixed sentence, the packet that it read and its position in it. */
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

/** Returns the line at which the parser stopped, or its part in the last packet. */
function brokenLine({ rawPacket, bytesParsed = 0 }: ParserError): string {
  if (rawPacket === undefined) return "";
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf("\n", bytesParsed - 1) + 1;
  const end = rawPacket.indexOf("\n", start);
  return rawPacket.toString("latin1", start, end < 0 ? rawPacket.length : end + 1);
}

/** Returns method and target of a request line with an unknown method (RFC 9112 section 3); null: the error is another one. */
export function unknownMethod(error: ParserError): { method: string; target: string } | null {
  if (error.code !== "HPE_INVALID_METHOD") return null;
  const [, method, target] = /^([!#$%&'*+.^_`|~\w-]+) (\S+) HTTP\/1\.[01]\r?\n$/.exec(brokenLine(error)) ?? [];
  return method === undefined || target === undefined ? null : { method, target };
}

/** Returns the API error for a parser error in a head. */
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
      `The request target is not valid: ${error.reason ?? "it cannot be parsed"}.`,
    );
  return new ApiError(
    "request_not_readable",
    `The request is not valid HTTP: ${error.reason ?? "it cannot be parsed"}.`,
  );
}

/** Returns the API error for a parser error in a body. */
export function bodyError(error: ParserError): ApiError {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new ApiError("request_timeout", "The body did not arrive in time.");
  return new ApiError("body_not_readable", `The body is not valid HTTP: ${error.reason ?? "it cannot be parsed"}.`);
}
