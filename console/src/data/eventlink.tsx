/** The object of an event by its name, as a link to the page that shows it. A deleted object has no page. */
import type { Event } from "@brume/api/event.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { useCallback } from "react";
import { useTexts } from "../texts/texts.tsx";
import { useData, useMay } from "./data.tsx";
import type { NamedEvent } from "./eventnames.ts";
import { kindAndId, objectOf } from "./eventview.ts";
import { queriesOf } from "./queries.ts";

export function EventObject({ event }: { event: NamedEvent }) {
  const t = useTexts();
  const name = event.Resource === "tunnel" ? <TunnelName event={event} /> : objectOf(event, t);
  const target = pageOf(event);
  return target === null ? name : <Link {...target}>{name}</Link>;
}

/** The object of an entry of the audit log: its kind and id, which the API has, and its name. */
export function NumberedObject({ event }: { event: NamedEvent }) {
  const t = useTexts();
  const name = objectOf(event, t);
  const kind = kindAndId(event, t);
  const text = name === kind ? kind : `${kind} · ${name}`;
  const target = pageOf(event);
  return target === null ? text : <Link {...target}>{text}</Link>;
}

/** The status of a tunnel, which its events contain, has no name. */
function TunnelName({ event }: { event: Event }) {
  const t = useTexts();
  const reads = queriesOf(useData().client);
  const networks = useQuery({ ...reads.publicNetworks(), enabled: useMay("network:read") }).data;
  const tunnels = networks?.find(({ Id }) => Id === event.ParentID)?.Vpn.Tunnels;
  return tunnels?.find(({ Id }) => Id === event.ResourceID)?.Name || objectOf(event, t);
}

/** Returns the name of the token that caused an event or another change, if the viewer may read tokens; otherwise its id. */
export function useTokenOf(): (event: Pick<Event, "TokenID">) => string {
  const t = useTexts();
  const tokens = useQuery({ ...queriesOf(useData().client).tokens(), enabled: useMay("account:admin") }).data;
  return useCallback(
    ({ TokenID }) =>
      TokenID === null ? t.activity.service : tokens?.find(({ ID }) => ID === TokenID)?.Name || String(TokenID),
    [t, tokens],
  );
}

export function EventToken({ event }: { event: Pick<Event, "TokenID"> }) {
  return useTokenOf()(event);
}

/** Returns the page that shows the object of the event; null: none does. */
function pageOf({ Type, Resource, ResourceID, ParentID, Data }: Event): LinkProps | null {
  if (Data === null) return null;
  const id = String(ResourceID);
  const parent = String(ParentID);
  switch (Resource) {
    case "server":
      return { to: "/servers/$id", params: { id } };
    case "action":
      return { to: "/servers/$id", params: { id: parent }, search: { tab: "actions" } };
    case "batch":
      return { to: "/servers", search: { group: id } };
    case "domain":
      return Type === "domain.withdrawn"
        ? { to: "/dns", search: { tab: "withdrawn" } }
        : { to: "/dns/$id", params: { id } };
    case "record":
      return { to: "/dns/$id", params: { id: parent } };
    case "claim":
      return { to: "/dns", search: { tab: "claims", claim: id } };
    case "publicnetwork":
      return { to: "/networks/$id", params: { id } };
    case "tunnel":
      return { to: "/networks/$id", params: { id: parent }, search: { tab: "vpn" } };
    case "network":
      return { to: "/networks/private/$id", params: { id } };
    case "image":
      return { to: "/images" };
    case "sshkey":
      return { to: "/access", search: { tab: "keys" } };
    case "token":
      return { to: "/access" };
    case "session":
      return { to: "/access", search: { tab: "sessions" } };
    case "project":
      return { to: "/access", search: { tab: "projects" } };
    case "webhook":
      return { to: "/activity/webhooks/$id", params: { id } };
    case "orphan":
    case "disk":
    case "certificate":
      return { to: "/host" };
    default:
      // A kind that a newer service has.
      Resource satisfies never;
      return null;
  }
}
