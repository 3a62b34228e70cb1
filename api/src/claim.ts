/**
 * Whose a domain is, where several projects want it: a claim is proven by a TXT record, a domain that was lost stays readable, and the
 * operator reserves names. How names of projects exclude each other is in the service's `dns/names`.
 */
import { type Static, Type } from "typebox";
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
  optional,
  optionalId,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { operations } from "./operation.ts";

/** The first label of the name at which a claim looks for its record. */
export const challengeLabel = "_brume-challenge";

export const claimLimits = {
  /** Days until a claim that is not proven fails. */
  days: 7,
  /** Pending claims of a project. */
  pending: 100,
} as const;

/** Names that a project can neither have nor claim. */
const nameFaults = ["domain_public_suffix", "domain_reserved"] as const;
/** Why a project cannot have a new domain of some name. */
export const newDomainFaults = ["domain_exists", "domain_not_available", ...nameFaults] as const;

export const claimStates = ["Pending", "Completed", "Failed"] as const;

export const Claim = Type.Object(
  {
    ID: id(),
    Name: text(),
    NamePunyCode: text(),
    State: word(claimStates),
    RecordName: text({ description: "Owner of the TXT record that proves the claim." }),
    RecordText: text({ description: "Text of that record." }),
    Detail: text({ description: "What the last check found." }),
    DomainID: nullable(id({ description: "The domain that the project got." })),
    DateCreate: date(),
    DateCheck: nullable(date({ description: "When the record was looked up last." })),
    DateExpire: date({ description: "When a claim that is not proven fails." }),
    Labels,
  },
  { title: "Claim" },
);
export type Claim = Static<typeof Claim>;

export const WithdrawnDomain = Type.Object(
  {
    ID: id({ description: "The id that the domain had." }),
    Name: text(),
    NamePunyCode: text(),
    Date: date(),
    Records: integer(0, 1_000_000),
    Reason: text(),
    ZoneFile: text({ description: "All records of the domain, for import elsewhere; empty in lists." }),
    Labels,
  },
  { title: "WithdrawnDomain" },
);
export type WithdrawnDomain = Static<typeof WithdrawnDomain>;

export const Reservation = Type.Object(
  {
    ID: id(),
    Name: text(),
    NamePunyCode: text(),
    ProjectID: nullable(id({ description: "The only project that may have domains here; `null`: none may." })),
    DateCreate: date(),
    Labels,
  },
  { title: "Reservation" },
);
export type Reservation = Static<typeof Reservation>;

const host = text({ maxLength: 1024, "x-also": ["DomainName"] });
const claimParam = { id: "claim_not_found" } as const;
const withdrawnParam = { id: "withdrawn_domain_not_found" } as const;

export const claimOperations = operations({
  listClaims: {
    method: "GET",
    path: "/dns/claim",
    access: "dns:read",
    summary: "List claims",
    query: listQuery({ name: nameFilter, state: wordsFilter(claimStates), label: labelFilter }),
    answer: list(Claim),
    list: true,
  },
  createClaim: {
    method: "POST",
    path: "/dns/claim",
    access: "dns:write",
    summary: "Claim a domain that another project has",
    description:
      "Publish a TXT record with `RecordText` at `RecordName`: at the present name servers of the name, or, with the consent of the project that has the name or one above it, in that project's domain. The record is looked up now, then again and again for 7 days. When it is found the domain is this project's, empty; domains of other projects at and below the name are withdrawn. The same name again: the pending claim, checked now.",
    body: Type.Object({ Name: host, Labels: optional(Labels) }),
    answer: Claim,
    tagged: true,
    shows: "readClaim",
    wait: 2,
    repeatable: true,
    faults: [...nameFaults, "quota_exceeded", "token_restricted"],
  },
  readClaim: {
    method: "GET",
    path: "/dns/claim/{id}",
    access: "dns:read",
    summary: "Read a claim",
    params: claimParam,
    answer: Claim,
    tagged: true,
  },
  deleteClaim: {
    method: "DELETE",
    path: "/dns/claim/{id}",
    access: "dns:write",
    summary: "Delete a claim",
    description: "A pending claim ends. A domain that a completed one brought stays.",
    params: claimParam,
    answer: null,
    faults: ["token_restricted"],
  },
  listWithdrawnDomains: {
    method: "GET",
    path: "/dns/withdrawn",
    access: "dns:read",
    summary: "List domains that another project proved to own",
    description: "They are no longer served. Their records are kept until the project deletes them.",
    query: listQuery({ name: nameFilter, label: labelFilter }),
    answer: list(WithdrawnDomain),
    list: true,
  },
  readWithdrawnDomain: {
    method: "GET",
    path: "/dns/withdrawn/{id}",
    access: "dns:read",
    summary: "Read a withdrawn domain with its records as a zone file",
    params: withdrawnParam,
    answer: WithdrawnDomain,
    tagged: true,
  },
  deleteWithdrawnDomain: {
    method: "DELETE",
    path: "/dns/withdrawn/{id}",
    access: "dns:write",
    summary: "Delete the records of a withdrawn domain",
    params: withdrawnParam,
    answer: null,
    faults: ["token_restricted"],
  },
  listReservations: {
    method: "GET",
    path: "/dns/reservation",
    access: "account:admin",
    summary: "List reserved names",
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
      "For one project, or without `ProjectID` for none. The deepest reservation counts. Domains that exist stay. A reservation for a project proves its claims, and permits a public suffix.",
    body: Type.Object({ Name: host, ProjectID: optionalId(), Labels: optional(Labels) }),
    answer: Reservation,
    tagged: true,
    faults: ["reservation_exists"],
  },
  deleteReservation: {
    method: "DELETE",
    path: "/dns/reservation/{id}",
    access: "account:admin",
    summary: "Release a reserved name",
    params: { id: "reservation_not_found" },
    answer: null,
  },
});
