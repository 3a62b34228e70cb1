/** The first steps on an empty installation, each with its purpose and its button. */
import type { Scope } from "@brume/api/operation.ts";
import { Link, type LinkProps } from "@tanstack/react-router";
import { useMays } from "../../data/data.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { Panel } from "../../ui/page.tsx";

interface Step {
  readonly scope: Scope;
  readonly icon: IconName;
  readonly title: string;
  readonly about: string;
  readonly action: string;
  readonly link: LinkProps;
}

export function Start() {
  const t = useTexts();
  const may = useMays();
  const { key, server, domain, network } = t.overview.steps;
  const steps: readonly Step[] = [
    {
      scope: "server:write",
      icon: "access",
      ...key,
      action: t.access.addKey,
      link: { to: "/access", search: { tab: "keys", create: "1" } },
    },
    {
      scope: "server:write",
      icon: "server",
      ...server,
      action: t.servers.create,
      link: { to: "/servers/create" },
    },
    {
      scope: "dns:write",
      icon: "dns",
      ...domain,
      action: t.domains.create,
      link: { to: "/dns", search: { create: "1" } },
    },
    {
      scope: "network:write",
      icon: "network",
      ...network,
      action: t.networks.create,
      link: { to: "/networks", search: { create: "public" } },
    },
  ];
  return (
    <section className="stack" aria-label={t.overview.start}>
      <div className="line apart">
        <h2>{t.overview.start}</h2>
        <a href="/docs">{t.overview.guide}</a>
      </div>
      <div className="columns starts">
        {steps
          .filter(({ scope }) => may(scope))
          .map(({ icon, title, about, action, link }) => (
            <Panel key={title}>
              <div className="start">
                <h3>
                  <Icon name={icon} />
                  {title}
                </h3>
                <p className="muted">{about}</p>
                <Link {...link} className={buttonClass()}>
                  {action}
                </Link>
              </div>
            </Panel>
          ))}
      </div>
    </section>
  );
}
