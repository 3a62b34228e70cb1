/** Builds a token: a purpose fills in its rights, and a sentence shows what it can do. The value is shown once. */
import { type Scope, scopes } from "@brume/api/operation.ts";
import { useQuery } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { faultsOf, troubleOf } from "../../data/trouble.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Code, Note, TroubleBox } from "../../ui/feedback.tsx";
import { AreaField, Check, SelectField, TextField } from "../../ui/field.tsx";

const presets = {
  full: [...scopes],
  read: ["server:read", "dns:read", "network:read"],
  certificate: ["dns:write"],
  monitoring: ["metrics:read", "server:read"],
  own: [],
} as const satisfies Readonly<Record<string, readonly Scope[]>>;
type Preset = keyof typeof presets;
const presetNames = Object.keys(presets) as Preset[];

/** Days of each duration; null: no limit. */
const durations = { d30: 30, d90: 90, y1: 365, ever: null } as const;
type Duration = keyof typeof durations;
const durationNames = Object.keys(durations) as Duration[];

export function CreateToken({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const mayDns = useMay("dns:read");
  const domains = useQuery({ ...queriesOf(client).domains(), enabled: mayDns }).data ?? [];
  const [Name, setName] = useState("");
  const [preset, setPreset] = useState<Preset>("read");
  const [held, setHeld] = useState<readonly Scope[]>(presets.read);
  const [domain, setDomain] = useState("");
  const [pattern, setPattern] = useState("");
  const [from, setFrom] = useState("");
  const [lasts, setLasts] = useState<Duration>("d90");
  const mayRestrict = held.length > 0 && held.every((scope) => scope.startsWith("dns:"));
  const days = durations[lasts];
  const addresses = from.split(/[\s,]+/).filter((part) => part !== "");
  const isRestricted = mayRestrict && domain !== "";
  const body = {
    Name,
    Scopes: [...held],
    ...(isRestricted && { DomainID: Number(domain), ...(pattern !== "" && { RecordPattern: pattern }) }),
    ...(days !== null && { ExpiresAt: expiryAfter(days) }),
    ...(addresses.length > 0 && { AllowedFrom: addresses }),
  };
  const { run, isBusy, error } = useChange(() => client.createToken({ body }), { isQuiet: true });
  const [secret, setSecret] = useState<string | null>(null);
  const faults = faultsOf(error);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(undefined).then(
      ({ Token }) => setSecret(Token),
      () => undefined,
    );
  };
  const select = (name: Preset): void => {
    setPreset(name);
    if (name !== "own") setHeld(presets[name]);
    setPattern(name === "certificate" ? "_acme-challenge*" : "");
  };
  if (secret !== null)
    return (
      <Dialog label={t.access.secretTitle} onClose={onClose}>
        <div className="inner">
          <DialogHead title={t.access.secretTitle} onClose={onClose} />
          <Note>{t.access.secretAbout}</Note>
          <Code text={secret} />
          <div className="line end">
            <Button kind="primary" onClick={onClose}>
              {t.common.close}
            </Button>
          </div>
        </div>
      </Dialog>
    );
  const sentence = held.map((scope) => t.access.cans[scope] ?? scope).join(", ");
  const domainName = domains.find(({ ID }) => String(ID) === domain)?.Name ?? "";
  return (
    <Dialog label={t.access.createToken} kind="wide" onClose={onClose}>
      <form onSubmit={submit}>
        <DialogHead title={t.access.createToken} onClose={onClose} />
        <TextField
          label={t.common.name}
          required
          autoFocus
          maxLength={64}
          fault={faults["/Name"]}
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
        <fieldset className="columns" aria-label={t.access.scopes}>
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
              value={domain}
              options={[["", t.access.allDomains], ...domains.map(({ ID, Name: name }) => [String(ID), name] as const)]}
              onChange={({ target }) => setDomain(target.value)}
            />
            {domain !== "" && (
              <TextField
                label={t.access.pattern}
                hint={t.access.patternHint}
                fault={faults["/RecordPattern"]}
                value={pattern}
                onChange={({ target }) => setPattern(target.value)}
              />
            )}
          </div>
        )}
        <AreaField
          label={t.access.from}
          hint={t.access.fromHint}
          rows={2}
          fault={Object.entries(faults).find(([pointer]) => pointer.startsWith("/AllowedFrom"))?.[1]}
          value={from}
          onChange={({ target }) => setFrom(target.value)}
        />
        <Note>
          <p>
            <strong>{t.access.can}</strong> {held.length === 0 ? t.access.canNothing : sentence}
            {isRestricted && ` ${t.access.onlyDomain(domainName, pattern)}`}
          </p>
        </Note>
        {error !== null && Object.keys(faults).length === 0 && <TroubleBox trouble={troubleOf(error, t)} />}
        {Name !== "" && <RequestPanel request={{ operation: "createToken", body }} />}
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={isBusy} disabled={held.length === 0}>
            {t.access.createToken}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Returns the end of a day, so that the request stays the same while one types. */
function expiryAfter(days: number): string {
  const date = new Date();
  date.setUTCDate(date.getUTCDate() + days);
  date.setUTCHours(23, 59, 59, 0);
  return date.toISOString();
}
