/** Tokens: what a client may do, in which project, on which records, from which addresses and how often. */
import type { Static } from "typebox";
import {
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  name,
  nameFilter,
  nullable,
  object,
  optional,
  optionalId,
  text,
  word,
} from "./common.ts";
import { requires } from "./form.ts";
import { operations, scopes } from "./operation.ts";
import { recordTypes } from "./record/types.ts";

const rate = {
  Requests: integer(1, 1_000_000, { description: "Number of requests within `Seconds`." }),
  Seconds: integer(1, 86_400, { description: "Seconds in which the bucket of the limit refills." }),
};
const RateLimit = object("RateLimit", "Limit on the requests of a token. `null`: no limit.", rate);
const RateLimitInput = object("RateLimitRequest", "Limit on the requests of a token. Default: no limit.", rate);
/** TypeScript type of this schema. */
export type RateLimit = Static<typeof RateLimit>;

/** A scope of a token. */
export const scope = word(scopes, { description: "A scope. `x:write` includes `x:read`." });

/** A token, without its secret after the creation. */
export const Token = object("Token", "A token, without its secret after the creation.", {
  ID: id({ description: "Id of the token." }),
  Name: name({ description: "Name of the token." }),
  Token: text({ description: "64 hexadecimal characters in the response to the creation, else empty." }),
  Scopes: list(scope, { description: "What the token may do." }),
  ProjectID: id({ description: "Project whose objects the token sees." }),
  DomainID: nullable(id({ description: "The only domain that the token sees. `null`: all domains of the project." })),
  RecordPattern: nullable(
    text({ description: "Owners of the records that the token sees, relative to the domain. `null`: all." }),
  ),
  RecordTypes: nullable(
    list(word(recordTypes, { description: "A record type." }), {
      description: "Types of the records that the token sees. `null`: all.",
    }),
  ),
  ExpiresAt: nullable(date({ description: "When the token expires. `null`: never." })),
  RateLimit: nullable(RateLimit),
  DateCreate: date({ description: "When the token was created." }),
  LastUsedAt: nullable(date({ description: "Last use, accurate to a minute. `null`: never used." })),
  AllowedFrom: nullable(
    list(text({ description: "An address or CIDR block." }), {
      description: "Addresses and CIDR blocks from which the token may be used. `null`: any.",
    }),
  ),
  Labels,
});
/** TypeScript type of this schema. */
export type Token = Static<typeof Token>;

const tokenParam = { id: "token_not_found" } as const;

/** Operations on tokens. */
export const tokenOperations = operations({
  listTokens: {
    method: "GET",
    path: "/token",
    access: "account:admin",
    summary: "List the tokens of a project",
    description: "Returns the tokens by id, without their secrets.",
    query: listQuery({
      name: nameFilter,
      label: labelFilter,
      project: optionalId({ description: "List the tokens of this project. Default: the project of the token." }),
    }),
    answer: list(Token),
    list: true,
    errors: ["project_not_found"],
  },
  createToken: {
    method: "POST",
    path: "/token",
    access: "account:admin",
    summary: "Create a token",
    description: "The response contains the token. It cannot be read again.",
    body: object(
      "CreateTokenRequest",
      "A new token.",
      {
        Name: name({ description: "Name of the token." }),
        Scopes: list(scope, { minItems: 1, description: "What the token may do. With `DomainID` only `dns:` scopes." }),
        ProjectID: optionalId({
          description: "Project whose objects the token sees. Default: the project of the requesting token.",
        }),
        DomainID: optionalId({ description: "The only domain that the token sees. Default: all." }),
        RecordPattern: optional(
          text({
            minLength: 1,
            maxLength: 253,
            description:
              "Owners of the records that the token sees, relative to `DomainID`, such as `_acme-challenge*`. `*` matches any characters, `?` one. Default: all.",
          }),
        ),
        RecordTypes: optional(
          list(word(recordTypes, { description: "A record type." }), {
            minItems: 1,
            description: "Types of the records of `DomainID` that the token sees. Default: all.",
          }),
        ),
        ExpiresAt: optional(date({ description: "When the token expires, in the future. Default: never." })),
        RateLimit: optional(RateLimitInput),
        AllowedFrom: optional(
          list(text({ description: "An address or CIDR block." }), {
            minItems: 1,
            maxItems: 64,
            description: "Addresses and CIDR blocks from which the token may be used. Default: any.",
          }),
        ),
        Labels: optional(Labels),
      },
      requires({ RecordPattern: "DomainID", RecordTypes: "DomainID" }),
    ),
    answer: Token,
    etag: true,
    resultOperation: "readToken",
    allowedWhenBlocked: true,
    errors: ["quota_exceeded"],
  },
  readToken: {
    method: "GET",
    path: "/token/{id}",
    access: "account:admin",
    own: "token",
    summary: "Get a token",
    description: "Returns the token without its secret.",
    params: tokenParam,
    answer: Token,
    etag: true,
  },
  deleteToken: {
    method: "DELETE",
    path: "/token/{id}",
    access: "account:admin",
    own: "token",
    summary: "Delete a token",
    description: "Requests with the token are rejected at once.",
    params: tokenParam,
    answer: null,
    errors: ["last_admin_token"],
  },
});
