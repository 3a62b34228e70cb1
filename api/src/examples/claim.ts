/** A claim of `example.org`, which another project has; the domain `example.net`, which was withdrawn because of a claim; a reserved name. */
import type { Claim, Reservation, WithdrawnDomain } from "../claim.ts";
import { date, type Examples } from "./example.ts";

const claim = (given: Partial<Claim>): Claim => ({
  ID: 5,
  Name: "example.org",
  NamePunyCode: "example.org",
  State: "Pending",
  RecordName: "_brume-challenge.example.org.",
  RecordText: "brume-claim=5f0c1d6f9b7e4a4f8c52b0a1d3e67f90",
  Detail: "_brume-challenge.example.org has no TXT record.",
  DomainID: null,
  DateCreate: date,
  DateCheck: date,
  DateExpire: "2026-11-27T09:15:00.120Z",
  Labels: {},
  ...given,
});

const withdrawn = (ZoneFile: string): WithdrawnDomain => ({
  ID: 4,
  Name: "example.net",
  NamePunyCode: "example.net",
  Date: date,
  Records: 1,
  Reason: "Another project proved that it owns example.net.",
  ZoneFile,
  Labels: {},
});

const reservation: Reservation = {
  ID: 1,
  Name: "internal",
  NamePunyCode: "internal",
  ProjectID: 1,
  DateCreate: date,
  Labels: {},
};

const zoneFile = [
  "example.net. 3600 IN SOA ns1.brume.internal. hostmaster.example.net. 1795166411 3600 600 1209600 60",
  "example.net. 3600 IN NS ns1.brume.internal. ; brume: automatic",
  "www.example.net. 3600 IN A 10.63.0.2",
  "",
].join("\n");

/** Examples of the operations on claims, withdrawn domains and reservations. */
export const claimExamples: Examples = {
  listClaims: { answer: [claim({ State: "Completed", DomainID: 6, Detail: "The record was found." })] },
  createClaim: { request: { Name: "example.org" }, answer: claim({}) },
  readClaim: { path: [5], answer: claim({}) },
  deleteClaim: { path: [5] },
  listWithdrawnDomains: { answer: [withdrawn("")] },
  readWithdrawnDomain: { path: [4], answer: withdrawn(zoneFile) },
  deleteWithdrawnDomain: { path: [4] },
  listReservations: { answer: [reservation] },
  createReservation: { request: { Name: "internal", ProjectID: 1 }, answer: reservation },
  deleteReservation: { path: [1] },
};
