/** Builds a token: a purpose fills in its rights, and two lists show what it can do and what not. The value is shown once. */
import type { RecordType } from "@brume/api/dns.ts";
import { grants, type Scope, scopes } from "@brume/api/operation.ts";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useAccount, useData, useMay } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useOtherFields } from "../../data/schemafields.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Note } from "../../ui/feedback.tsx";
import { AreaField, Check, SelectField, TextField } from "../../ui/field.tsx";
import { SecretDialog } from "../../ui/secret.tsx";

const presets = {
  full: [...scopes],
  read: ["server:read", "dns:read", "network:read"],
  certificate: ["dns:write"],
  monitoring: ["metrics:read", "server:read"],
  own: [],
} as const satisfies Readonly<Record<string, readonly Scope[]>>;
type Preset = keyof typeof presets;
const presetNames = Object.keys(presets) as Preset[];

const placed: ReadonlySet<string> = new Set([
  "Name",
  "Scopes",
  "ProjectID",
  "DomainID",
  "RecordPattern",
  "RecordTypes",
  "ExpiresAt",
  "AllowedFrom",
]);

/** Days of each duration; null: no limit. */
const durations = { d30: 30, d90: 90, y1: 365, ever: null } as const;
type Duration = keyof typeof durations;
const durationNames = Object.keys(durations) as Duration[];

export function CreateToken({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const { client, queries } = useData();
  const mayDns = useMay("dns:read");
  const domains = useQuery({ ...queriesOf(client).domains(), enabled: mayDns }).data ?? [];
  const [Name, setName] = useState("");
  const [preset, setPreset] = useState<Preset>("read");
  const [held, setHeld] = useState<readonly Scope[]>(presets.read);
  const [domain, setDomain] = useState("");
  const [pattern, setPattern] = useState("");
  const [types, setTypes] = useState("");
  const [from, setFrom] = useState("");
  const [project, setProject] = useState("");
  const { others, renderOthers } = useOtherFields("createToken", placed);
  const projects = useQuery(queriesOf(client).projects()).data?.Projects ?? [];
  const own = useAccount()?.Token.ProjectID;
  const [lasts, setLasts] = useState<Duration>("d90");
  const mayRestrict = held.length > 0 && held.every((scope) => scope.startsWith("dns:"));
  const days = durations[lasts];
  const addresses = wordsOf(from);
  const recordTypes = wordsOf(types.toUpperCase());
  const isRestricted = mayRestrict && domain !== "";
  // Without a domain the token could change the records of all.
  const isOfOneDomain = preset === "certificate";
  const body = {
    Name,
    Scopes: [...held],
    ...(isRestricted && {
      DomainID: Number(domain),
      ...(pattern !== "" && { RecordPattern: pattern }),
      ...(recordTypes.length > 0 && { RecordTypes: recordTypes as RecordType[] }),
    }),
    ...(days !== null && { ExpiresAt: expiryAfter(days) }),
    ...(addresses.length > 0 && { AllowedFrom: addresses }),
    ...(project !== "" && { ProjectID: Number(project) }),
    ...others,
  };
  const [secret, setSecret] = useState<string | null>(null);
  const select = (name: Preset): void => {
    setPreset(name);
    if (name !== "own") setHeld(presets[name]);
    setPattern(name === "certificate" ? "_acme-challenge*" : "");
    setTypes(name === "certificate" ? "TXT" : "");
  };
  if (secret !== null) return <SecretDialog title={t.access.secretTitle} secret={secret} onClose={onClose} />;
  const textOf = (scope: Scope): string => t.access.cans[scope] ?? scope;
  const denied = scopes.filter((scope) => !grants(held, scope)).map(textOf);
  const domainName = domains.find(({ ID }) => String(ID) === domain)?.Name ?? "";
  // What a token of one domain sees or changes.
  const records = t.access.recordsOf(domainName, pattern, recordTypes.join(", "));
  return (
    <FormDialog
      title={t.access.createToken}
      action={t.access.createToken}
      kind="wide"
      request={{ operation: "createToken", body }}
      isComplete={Name !== "" && held.length > 0 && (isRestricted || !isOfOneDomain)}
      send={(options) => client.createToken({ body }, options)}
      onDone={({ Token }) => {
        setSecret(Token);
        // There are no events of other projects.
        void queries.invalidateQueries({ queryKey: ["token"] });
      }}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.common.name}
            required
            autoFocus
            maxLength={64}
            error={error("/Name")}
            value={Name}
            onChange={({ target }) => setName(target.value)}
          />
          <div className="columns">
            <SelectField
              label={t.access.preset}
              value={preset}
              options={presetNames.map((name) => [name, t.access.presets[name]])}
              onChange={({ target }) => select(target.value as Preset)}
            />
            <SelectField
              label={t.access.lasts}
              value={lasts}
              options={durationNames.map((name) => [name, t.access.durations[name]])}
              onChange={({ target }) => setLasts(target.value as Duration)}
            />
          </div>
          <fieldset className="columns pairs" aria-label={t.access.scopes}>
            <legend className="field-label">{t.access.scopes}</legend>
            {scopes.map((scope) => (
              <Check
                key={scope}
                label={<code>{scope}</code>}
                checked={held.includes(scope)}
                onChange={({ target }) => {
                  setPreset("own");
                  setHeld(scopes.filter((one) => (one === scope ? target.checked : held.includes(one))));
                }}
              />
            ))}
          </fieldset>
          {mayRestrict && (
            <div className="columns">
              <SelectField
                label={t.access.domain}
                required={isOfOneDomain}
                error={error("/DomainID")}
                value={domain}
                options={[
                  ["", isOfOneDomain ? t.access.selectDomain : t.access.allDomains],
                  ...domains.map(({ ID, Name: name }) => [String(ID), name] as const),
                ]}
                onChange={({ target }) => setDomain(target.value)}
              />
              {(domain !== "" || isOfOneDomain) && (
                <>
                  <TextField
                    label={t.access.pattern}
                    hint={t.access.patternHint}
                    error={error("/RecordPattern")}
                    value={pattern}
                    onChange={({ target }) => setPattern(target.value)}
                  />
                  <TextField
                    label={t.access.types}
                    hint={t.access.typesHint}
                    error={error("/RecordTypes")}
                    value={types}
                    onChange={({ target }) => setTypes(target.value)}
                  />
                </>
              )}
            </div>
          )}
          {projects.length > 1 && (
            <SelectField
              label={t.access.project}
              error={error("/ProjectID")}
              value={project}
              options={[
                ["", t.access.ownProject],
                ...projects.filter(({ ID }) => ID !== own).map((one) => [String(one.ID), one.Name] as const),
              ]}
              onChange={({ target }) => setProject(target.value)}
            />
          )}
          <AreaField
            label={t.access.from}
            hint={t.access.fromHint}
            rows={2}
            error={error("/AllowedFrom")}
            value={from}
            onChange={({ target }) => setFrom(target.value)}
          />
          {renderOthers(error)}
          <Note>
            {held.length === 0 ? (
              <p>{t.access.canNothing}</p>
            ) : (
              <Rights
                title={t.access.can}
                rights={held.map(
                  (scope) =>
                    (isRestricted || isOfOneDomain ? t.access.canRecords[scope]?.(records) : null) ?? textOf(scope),
                )}
              />
            )}
            {held.length > 0 && denied.length > 0 && !held.includes("account:admin") && (
              <Rights title={t.access.cannot} rights={denied} />
            )}
          </Note>
        </>
      )}
    </FormDialog>
  );
}

function Rights({ title, rights }: { title: string; rights: readonly string[] }) {
  return (
    <>
      <strong>{title}</strong>
      <ul className="marked" aria-label={title}>
        {rights.map((right) => (
          <li key={right}>{right}</li>
        ))}
      </ul>
    </>
  );
}

const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter((part) => part !== "");

/** Returns the end of a day, so that the request stays the same while one types. */
function expiryAfter(days: number): string {
  const date = new Date();
  date.setUTCDate(date.getUTCDate() + days);
  date.setUTCHours(23, 59, 59, 0);
  return date.toISOString();
}
