/** Tests a packet against the rules, also those that are not applied yet. The service decides; the editor highlights the deciding rule. */
import { ApiError } from "@brume/api/client.ts";
import { packetProtocols } from "@brume/api/firewall.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import { skipToken, useQuery } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import { useData } from "../../data/data.tsx";
import { useSettled } from "../../data/dryrun.ts";
import { placeErrors } from "../../data/errortext.ts";
import { type RuleSet, requestOf } from "../../data/firewall.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { Unplaced } from "../../data/unplaced.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { rewrite, SelectField, TextField } from "../../ui/field.tsx";
import { Panel, State } from "../../ui/page.tsx";

/** `rule`: number of the deciding rule; null: none matches. */
export interface Verdict {
  readonly passes: boolean;
  readonly rule: number | null;
}

/** Reasons of verdicts on packets that the firewall filters. Other packets do not cross it, or no rule can allow them. */
const ofRules = /^(Rule \d|No rule matches|The firewall is not enabled)/;

interface PacketTestProps {
  readonly network: PublicNetwork;
  /** The edited rules; null: those that are stored. */
  readonly set: RuleSet | null;
  readonly isOn: boolean;
  readonly onVerdict: (verdict: Verdict | null) => void;
}

export function PacketTest({ network, set, isOn, onVerdict }: PacketTestProps) {
  const t = useTexts();
  const { client } = useData();
  const id = useId();
  const [Protocol, setProtocol] = useState<(typeof packetProtocols)[number]>("Tcp");
  const [Source, setSource] = useState("");
  const [Destination, setDestination] = useState(network.LinkedServers[0]?.IP ?? "");
  const [port, setPort] = useState("443");
  const path = { id: network.Id };
  const hasPort = Protocol !== "Icmp";
  const packet = { Protocol, Source, Destination, ...(hasPort && { DestinationPort: Number(port) }) };
  const hasAddresses = Source !== "" && Destination !== "";
  const isComplete = hasAddresses && (!hasPort || port !== "");
  const rules = set && { Rules: requestOf(set).Rules, DefaultRuleAction: set.DefaultRuleAction };
  // Counters change; the rules do not.
  const key = useSettled(JSON.stringify([packet, rules, network.Generation, isOn]));
  const isSettled = key === JSON.stringify([packet, rules, network.Generation, isOn]);
  const { data, error } = useQuery({
    queryKey: ["packettest", network.Id, key],
    queryFn:
      isComplete && isSettled
        ? ({ signal }) => client.checkFirewall({ path, body: { ...packet, ...rules } }, { signal })
        : skipToken,
    gcTime: 0,
    placeholderData: (before) => (isComplete ? before : undefined),
  });
  const isOfRules = data === undefined || ofRules.test(data.Reason);
  const passes =
    isComplete && error === null && data !== undefined ? (isOfRules && !isOn) || data.Verdict === "Allow" : null;
  const rule = data?.Rule ?? null;
  useEffect(() => {
    onVerdict(passes === null || !isOfRules ? null : { passes, rule });
  }, [passes, isOfRules, rule, onVerdict]);
  const reason = (): string => {
    if (data !== undefined && !isOfRules) return t.errors.detail(data.Reason);
    if (!isOn) return t.firewall.byOff;
    return rule === null ? t.firewall.byDefault : t.firewall.byRule(rule);
  };
  const errors = placeErrors(isComplete ? error : null, t);
  // The editor shows the errors of its rules.
  const areRulesInvalid =
    error instanceof ApiError && error.errors.some(({ pointer }) => pointer.startsWith("/Rules/"));
  const addresses = network.LinkedServers.map(({ IP }) => IP);
  return (
    <Panel title={t.firewall.test}>
      <div className="stack">
        <p className="muted small">{t.firewall.testAbout}</p>
        <div className="columns packet">
          <SelectField
            label={t.firewall.protocol}
            value={Protocol}
            options={packetProtocols.map((name) => [name, t.firewall.protocols[name]])}
            onChange={({ target }) => setProtocol(target.value as typeof Protocol)}
          />
          <TextField
            label={t.firewall.testSource}
            error={errors.at("/Source")}
            hint={t.firewall.testExample("203.0.113.7")}
            list={id}
            value={Source}
            onChange={({ target }) => setSource(rewrite(target, target.value.trim()))}
          />
          <TextField
            label={t.firewall.testDestination}
            error={errors.at("/Destination")}
            hint={
              addresses[0] === undefined ? t.firewall.testInside(network.CIDR) : t.firewall.testExample(addresses[0])
            }
            list={id}
            value={Destination}
            onChange={({ target }) => setDestination(rewrite(target, target.value.trim()))}
          />
          <TextField
            label={t.firewall.testPort}
            error={errors.at("/DestinationPort")}
            inputMode="numeric"
            disabled={!hasPort}
            value={hasPort ? port : ""}
            onChange={({ target }) => setPort(rewrite(target, target.value.replaceAll(/\D/g, "")))}
          />
        </div>
        <datalist id={id}>
          {addresses.map((address) => (
            <option key={address} value={address} />
          ))}
        </datalist>
        <div role="status">
          {!isComplete && <p className="muted">{hasAddresses ? t.firewall.testNoPort : t.firewall.testIncomplete}</p>}
          {isComplete && areRulesInvalid && <p className="muted">{t.firewall.testInvalid}</p>}
          {passes !== null && (
            <p className="line">
              <State tone={passes ? "good" : "bad"} icon={passes ? "check" : "blocked"}>
                {passes ? t.firewall.passes : t.firewall.blocked}
              </State>
              <span>{reason()}</span>
            </p>
          )}
        </div>
        {isComplete && !areRulesInvalid && <Unplaced error={error} errors={errors} />}
        {isComplete && <RequestPanel request={{ operation: "checkFirewall", path, body: { ...packet, ...rules } }} />}
      </div>
    </Panel>
  );
}
