/** The present traffic of servers, tunnels and firewall rules. Measurements have no events, so they are read again while the page is visible. */
import type { PublicNetwork } from "@brume/api/network.ts";
import type { TunnelStatus } from "@brume/api/vpn.ts";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useData, useMay } from "../../data/data.tsx";
import { counterKey, type RuleCounter } from "../../data/firewall.ts";
import type { Rate } from "../../data/networkmap.ts";
import { queriesOf } from "../../data/queries.ts";
import { useRates } from "../../data/rates.ts";

/** Servers whose traffic is read: a request for each, every ten seconds. */
const mostRead = 60;

/** Returns the traffic by id of the server. */
export function useServerRates(servers: readonly number[]): ReadonlyMap<number, Rate> {
  const queries = queriesOf(useData().client);
  const mayRead = useMay("server:read");
  const read = mayRead ? servers.slice(0, mostRead) : [];
  const results = useQueries({ queries: read.map((id) => queries.metrics(id, 120, 10)) });
  const stamp = results.map(({ dataUpdatedAt }) => dataUpdatedAt).join();
  return useMemo(() => {
    const last = (values: readonly (number | null)[]): number => values.findLast((value) => value !== null) ?? 0;
    return new Map(
      results.flatMap(({ data }, index) => {
        const id = read[index];
        return data === undefined || id === undefined
          ? []
          : [[id, { received: last(data.Series.NetIn), sent: last(data.Series.NetOut) }] as const];
      }),
    );
  }, [stamp, read.join()]);
}

/** Returns the counters of the rules of a network by number, and how many packets a second each has matched lately. */
export function useRuleCounters({ Id, Firewall }: PublicNetwork): ReadonlyMap<number, RuleCounter> {
  const { data, dataUpdatedAt } = useQuery(queriesOf(useData().client).ruleCounters(Id));
  const packets = useMemo(() => new Map((data ?? []).map((rule) => [counterKey(rule), rule.Packets ?? 0])), [data]);
  const rates = useRates(packets, dataUpdatedAt);
  return useMemo(() => {
    const read = new Map((data ?? []).map((rule) => [counterKey(rule), rule]));
    return new Map(
      Firewall.Rules.map((rule) => {
        const key = counterKey(rule);
        return [rule.Number, { rule: read.get(key) ?? rule, rates: rates.get(key) ?? [] }];
      }),
    );
  }, [data, rates, Firewall.Rules]);
}

interface Tunnels {
  readonly states: ReadonlyMap<number, TunnelStatus>;
  /** Of tunnels that were read twice. */
  readonly rates: ReadonlyMap<number, Rate>;
}

/** Returns state and traffic by id of the tunnel, of these networks. */
export function useTunnels(networks: readonly number[]): Tunnels {
  const queries = queriesOf(useData().client);
  const results = useQueries({ queries: networks.map((id) => queries.tunnelStatus(id)) });
  const stamp = results.map(({ dataUpdatedAt }) => dataUpdatedAt).join();
  const before = useRef(new Map<number, { readonly at: number; readonly status: TunnelStatus }>());
  const [tunnels, setTunnels] = useState<Tunnels>({ states: new Map(), rates: new Map() });
  useEffect(() => {
    setTunnels((shown) => {
      const states = new Map<number, TunnelStatus>();
      const rates = new Map(shown.rates);
      for (const { data, dataUpdatedAt: at } of results)
        for (const status of data ?? []) {
          states.set(status.TunnelId, status);
          const last = before.current.get(status.TunnelId);
          if (last !== undefined && at > last.at) {
            const seconds = (at - last.at) / 1000;
            rates.set(status.TunnelId, {
              received: Math.max(0, status.BytesIn - last.status.BytesIn) / seconds,
              sent: Math.max(0, status.BytesOut - last.status.BytesOut) / seconds,
            });
          }
          if (last?.at !== at) before.current.set(status.TunnelId, { at, status });
        }
      return { states, rates };
    });
  }, [stamp]);
  return tunnels;
}
