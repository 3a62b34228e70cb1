/**
 * The part of the contract that the client needs to send a request: method, path, and a few properties of the response. The package
 * contains this table as plain data, so that a browser bundle with the client contains no schemas (`scripts/build-sdk.ts`).
 */
import { contract, type OperationName, operationNames } from "./contract.ts";
import type { Operation } from "./operation.ts";

/** What the client needs to know about an operation. */
export type Route = Pick<Operation, "method" | "path" | "media" | "readOnlyPost" | "alsoReturns" | "content">;

function routeOf({ method, path, media, readOnlyPost, alsoReturns, content }: Operation): Route {
  return {
    method,
    path,
    ...(media !== undefined && { media }),
    ...(readOnlyPost !== undefined && { readOnlyPost }),
    ...(alsoReturns !== undefined && { alsoReturns }),
    ...(content !== undefined && { content }),
  };
}

/** All routes, by operation id. */
export const routes = Object.fromEntries(operationNames.map((name) => [name, routeOf(contract[name])])) as Readonly<
  Record<OperationName, Route>
>;
