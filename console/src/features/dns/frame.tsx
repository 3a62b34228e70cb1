/** Domains, and who owns their names: claims, domains that other projects have taken over, and names that the operator reserves. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useIsOfOneDomain, useMay, useMayOwnDomains } from "../../data/data.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { CreateClaim } from "./claim.tsx";
import { ClaimList } from "./claims.tsx";
import { CreateDomain } from "./createdomain.tsx";
import { DomainList } from "./list.tsx";
import { CreateReservation, ReservationList } from "./reservations.tsx";
import { WithdrawnList } from "./withdrawn.tsx";

export function DnsFrame() {
  const t = useTexts();
  const go = useNavigate({ from: "/dns" });
  const { tab: wanted, create } = useSearch({ from: "/dns" });
  const mayOwn = useMayOwnDomains();
  const isAdmin = useMay("account:admin");
  const isOfOneDomain = useIsOfOneDomain() === true;
  const parts = {
    domains: { Part: DomainList, Create: mayOwn ? CreateDomain : null, action: t.domains.create },
    ...(!isOfOneDomain && {
      claims: { Part: ClaimList, Create: mayOwn ? CreateClaim : null, action: t.claims.create },
      withdrawn: { Part: WithdrawnList, Create: null, action: "" },
    }),
    ...(isAdmin && { reserved: { Part: ReservationList, Create: CreateReservation, action: t.reserved.create } }),
  };
  const names = Object.keys(parts) as (keyof typeof t.domains.tabs)[];
  const tab = names.find((name) => name === wanted) ?? "domains";
  const { Part, Create, action } = parts[tab] ?? parts.domains;
  const setCreating = (is: boolean): void => {
    void go({ search: { tab, ...(is && { create: "1" }) }, replace: true });
  };
  const button = Create && (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      {action}
    </Button>
  );
  return (
    <div className="stack">
      <PageHead title={t.nav.dns}>{button}</PageHead>
      {names.length > 1 && (
        <Tabs label={t.domains.tabsLabel}>
          {names.map((name) => (
            <Link key={name} to="/dns" search={{ tab: name }} aria-current={name === tab ? "page" : undefined}>
              {t.domains.tabs[name]}
            </Link>
          ))}
        </Tabs>
      )}
      <Part button={button} />
      {create !== undefined && Create && <Create onClose={() => setCreating(false)} />}
    </div>
  );
}
