/**
 * Ownership of domains. A project proves a claim by a TXT record; a withdrawn domain stays readable; the operator reserves names. The
 * service's `dns/names` decides which names of different projects exclude each other.
 */
import type { Static } from "typebox";
import {
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  nameFilter,
  nullable,
  object,
  optional,
  optionalId,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { operations } from "./operation.ts";

/** First label of the owner name of the TXT record that proves a claim. */
export const challengeLabel = "_brume-challenge";

/** Numbers that the API reference and the service share. */
export const claimLimits = {
  /** Days until an unproven claim fails. */
  days: 7,
  /** Most pending claims of a project. */
  pending: 100,
} as const;

/** Errors for names that a project can neither create nor claim. */
const nameErrors = ["domain_public_suffix", "domain_reserved"] as const;
/** Errors that reject the name of a new domain. */
export const newDomainErrors = ["domain_exists", "domain_not_available", ...nameErrors] as const;

/** Values of `State`. `Completed`: the domain is in the project of the claim. */
export const claimStates = ["Pending", "Completed", "Failed"] as const;

/** A claim of a domain name that another project has. */
export const Claim = object("Claim", "A claim of a domain name that another project has.", {
  ID: id({ description: "Id of the claim." }),
  Name: text({ description: "Name of the domain, in Unicode." }),
  NamePunyCode: text({ description: "Name of the domain, in ASCII." }),
  State: word(claimStates, {
    description:
      "`Pending`: waits for the proof. `Completed`: this project has the domain. `Failed`: not proven in time.",
  }),
  RecordName: text({ description: "Owner name of the TXT record that proves the claim." }),
  RecordText: text({ description: "Text of the TXT record." }),
  Detail: text({ description: "Result of the last check." }),
  DomainID: nullable(id({ description: "Domain that the completed claim created. `null`: none." })),
  DateCreate: date({ description: "When the claim was created." }),
  DateCheck: nullable(date({ description: "Time of the last check. `null`: not checked." })),
  DateExpire: date({ description: "When the claim fails unless it is proven." }),
  Labels,
});
/** TypeScript type of this schema. */
export type Claim = Static<typeof Claim>;

/** A domain that its project lost to a proven claim. */
export const WithdrawnDomain = object("WithdrawnDomain", "A domain that its project lost to a proven claim.", {
  ID: id({ description: "Former id of the domain." }),
  Name: text({ description: "Name of the domain, in Unicode." }),
  NamePunyCode: text({ description: "Name of the domain, in ASCII." }),
  Date: date({ description: "When the domain was withdrawn." }),
  Records: integer(0, 1_000_000, { description: "Number of records." }),
  Reason: text({ description: "Why the domain was withdrawn." }),
  ZoneFile: text({ description: "All records of the domain as a zone file; empty in lists." }),
  Labels,
});
/** TypeScript type of this schema. */
export type WithdrawnDomain = Static<typeof WithdrawnDomain>;

/** A name that the operator reserves. */
export const Reservation = object("Reservation", "A name that the operator reserves, with all names below it.", {
  ID: id({ description: "Id of the reservation." }),
  Name: text({ description: "Reserved name, in Unicode." }),
  NamePunyCode: text({ description: "Reserved name, in ASCII." }),
  ProjectID: nullable(
    id({ description: "The only project that may create domains at and below the name. `null`: none." }),
  ),
  DateCreate: date({ description: "When the reservation was created." }),
  Labels,
});
/** TypeScript type of this schema. */
export type Reservation = Static<typeof Reservation>;

const host = <const D extends string>(description: D) =>
  text({ maxLength: 1024, "x-also": ["DomainName"], description });
const claimParam = { id: "claim_not_found" } as const;
const withdrawnParam = { id: "withdrawn_domain_not_found" } as const;

/** Operations on claims, withdrawn domains and reservations. */
export const claimOperations = operations({
  listClaims: {
    method: "GET",
    path: "/dns/claim",
    access: "dns:read",
    summary: "List claims",
    description: "Returns the claims of the project, by id.",
    query: listQuery({ name: nameFilter, state: wordsFilter(claimStates), label: labelFilter }),
    answer: list(Claim),
    list: true,
  },
  createClaim: {
    method: "POST",
    path: "/dns/claim",
    access: "dns:write",
    summary: "Claim a domain of another project",
    description:
      "Publish a TXT record with `RecordText` at `RecordName`, on the current name servers of the name or in the domain of the other project. The service looks the record up now and repeatedly for 7 days. When the record exists, this project gets the domain without records, and domains of other projects at and below the name are withdrawn. Idempotent: the same name returns the pending claim and checks it again.",
    body: object("CreateClaimRequest", "The domain to claim.", {
      Name: host("Name of the domain, in Unicode or ASCII."),
      Labels: optional(Labels),
    }),
    answer: Claim,
    etag: true,
    resultOperation: "readClaim",
    wait: 2,
    repeatable: true,
    errors: [...nameErrors, "quota_exceeded", "token_restricted"],
  },
  readClaim: {
    method: "GET",
    path: "/dns/claim/{id}",
    access: "dns:read",
    summary: "Get a claim",
    description: "Returns the claim with the record that proves it and the result of the last check.",
    params: claimParam,
    answer: Claim,
    etag: true,
  },
  deleteClaim: {
    method: "DELETE",
    path: "/dns/claim/{id}",
    access: "dns:write",
    summary: "Delete a claim",
    description: "Ends a pending claim. A domain from a completed claim is kept.",
    params: claimParam,
    answer: null,
    errors: ["token_restricted"],
  },
  listWithdrawnDomains: {
    method: "GET",
    path: "/dns/withdrawn",
    access: "dns:read",
    summary: "List withdrawn domains",
    description:
      "Domains whose ownership another project has proven. They are not served. Their records are stored until the project deletes them.",
    query: listQuery({ name: nameFilter, label: labelFilter }),
    answer: list(WithdrawnDomain),
    list: true,
  },
  readWithdrawnDomain: {
    method: "GET",
    path: "/dns/withdrawn/{id}",
    access: "dns:read",
    summary: "Get a withdrawn domain with its zone file",
    description: "Returns the records that the domain had when it was withdrawn.",
    params: withdrawnParam,
    answer: WithdrawnDomain,
    etag: true,
  },
  deleteWithdrawnDomain: {
    method: "DELETE",
    path: "/dns/withdrawn/{id}",
    access: "dns:write",
    summary: "Delete a withdrawn domain",
    description: "Its records cannot be read again.",
    params: withdrawnParam,
    answer: null,
    errors: ["token_restricted"],
  },
  listReservations: {
    method: "GET",
    path: "/dns/reservation",
    access: "account:admin",
    summary: "List reserved names",
    description: "Returns the reservations of all projects, by id.",
    query: listQuery({ name: nameFilter, label: labelFilter }),
    answer: list(Reservation),
    list: true,
  },
  createReservation: {
    method: "POST",
    path: "/dns/reservation",
    access: "account:admin",
    summary: "Reserve a name and all names below it",
    description:
      "Reserves the name for one project, or without `ProjectID` for none. The most specific reservation applies. Existing domains are kept. A reservation for a project also proves its claims and allows a public suffix.",
    body: object("CreateReservationRequest", "The name to reserve.", {
      Name: host("Name to reserve, in Unicode or ASCII."),
      ProjectID: optionalId({
        description: "The only project that may create domains at and below the name. Default: none.",
      }),
      Labels: optional(Labels),
    }),
    answer: Reservation,
    etag: true,
    errors: ["reservation_exists"],
  },
  deleteReservation: {
    method: "DELETE",
    path: "/dns/reservation/{id}",
    access: "account:admin",
    summary: "Release a reserved name",
    description: "Existing domains are kept.",
    params: { id: "reservation_not_found" },
    answer: null,
  },
});
