/** The main navigation: at the left, or as a bar at the bottom of a phone. */
import { Link, type LinkProps } from "@tanstack/react-router";
import { useTexts } from "../texts/texts.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import mark from "../ui/mark.svg";

interface Entry {
  readonly to: NonNullable<LinkProps["to"]>;
  readonly icon: IconName;
  readonly name: string;
}

function useEntries(): readonly Entry[] {
  const { nav } = useTexts();
  return [
    { to: "/", icon: "overview", name: nav.overview },
    { to: "/servers", icon: "server", name: nav.servers },
    { to: "/networks", icon: "network", name: nav.networks },
    { to: "/dns", icon: "dns", name: nav.dns },
    { to: "/activity", icon: "activity", name: nav.activity },
    { to: "/access", icon: "access", name: nav.access },
  ];
}

const active = { className: "active", "aria-current": "page" } as const;

export function Nav() {
  const t = useTexts();
  return (
    <nav className="nav" aria-label={t.nav.label}>
      <Link to="/" className="brand" aria-label="Brume">
        <img src={mark} alt="" className="mark" width={26} height={26} />
        <span className="label" aria-hidden="true">
          Brume
        </span>
      </Link>
      <ul>
        {useEntries().map(({ to, icon, name }) => (
          <li key={to}>
            <Link to={to} activeProps={active} activeOptions={{ exact: to === "/", includeSearch: false }} title={name}>
              <Icon name={icon} />
              <span className="label">{name}</span>
            </Link>
          </li>
        ))}
      </ul>
      <div className="foot">
        <a href="/docs">{t.nav.reference}</a>
      </div>
    </nav>
  );
}

export function BottomBar() {
  const t = useTexts();
  return (
    <nav className="bottom-bar" aria-label={t.nav.label}>
      {useEntries().map(({ to, icon, name }) => (
        <Link key={to} to={to} activeProps={active} activeOptions={{ exact: to === "/", includeSearch: false }}>
          <Icon name={icon} size={20} />
          {name}
        </Link>
      ))}
    </nav>
  );
}
