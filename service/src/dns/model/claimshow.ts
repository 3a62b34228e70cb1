/** Converts rows of claims, withdrawn domains and reserved names to their API form. */
import { type Claim, challengeLabel, type Reservation, type WithdrawnDomain } from "@brume/api/claim.ts";
import { formatDate, type Labels } from "@brume/api/common.ts";
import type { ClaimRow, ReservedName, WithdrawnRow } from "../claimtable.ts";

const labelsOf = (text: string) => JSON.parse(text) as Labels;

/** Returns the TXT record that proves a claim; `name` in ASCII without final dot. */
export const proofOf = ({ ascii, secret }: Pick<ClaimRow, "ascii" | "secret">) => ({
  name: `${challengeLabel}.${ascii}`,
  text: `brume-claim=${secret}`,
});

export function showClaim(row: ClaimRow): Claim {
  const { name, text } = proofOf(row);
  return {
    ID: row.id,
    Name: row.name,
    NamePunyCode: row.ascii,
    State: row.state,
    RecordName: `${name}.`,
    RecordText: text,
    Detail: row.detail,
    DomainID: row.domain_id,
    DateCreate: formatDate(row.created),
    DateCheck: row.checked === null ? null : formatDate(row.checked),
    DateExpire: formatDate(row.expires),
    Labels: labelsOf(row.labels),
  };
}

/** Returns the API form. `zoneFile` is empty in lists. */
export const showWithdrawn = (row: Omit<WithdrawnRow, "zone_file">, zoneFile: string): WithdrawnDomain => ({
  ID: row.id,
  Name: row.name,
  NamePunyCode: row.ascii,
  Date: formatDate(row.date),
  Records: row.record_count,
  Reason: row.reason,
  ZoneFile: zoneFile,
  Labels: labelsOf(row.labels),
});

export const showReservation = (row: ReservedName): Reservation => ({
  ID: row.id,
  Name: row.name,
  NamePunyCode: row.ascii,
  ProjectID: row.project_id,
  DateCreate: formatDate(row.created),
  Labels: labelsOf(row.labels),
});

export const claimTag = (row: Pick<ClaimRow, "id" | "version">): string => `claim-${row.id}-${row.version}`;
