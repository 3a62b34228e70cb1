/** The main navigation: at the left, or as a bar at the bottom of a phone. */
import { Link, useMatchRoute, useNavigate } from "@tanstack/react-router";
import { useTexts } from "../texts/texts.tsx";
import { Icon } from "../ui/icon.tsx";
import mark from "../ui/mark.svg";
import { Menu, MenuItem } from "../ui/menu.tsx";
import { usePages } from "./pages.ts";

/** Returns the pages of the navigation. */
const useEntries = () => usePages().filter(({ isPart }) => isPart !== true);

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

/** Entries of the bar itself; a menu has the others. */
const inBar = 4;

export function BottomBar() {
  const t = useTexts();
  const go = useNavigate();
  const isAt = useMatchRoute();
  const entries = useEntries();
  const isInMenu = entries.slice(inBar).some(({ to }) => isAt({ to, fuzzy: true }) !== false);
  return (
    <nav className={isInMenu ? "bottom-bar in-menu" : "bottom-bar"} aria-label={t.nav.label}>
      {entries.slice(0, inBar).map(({ to, icon, name }) => (
        <Link key={to} to={to} activeProps={active} activeOptions={{ exact: to === "/", includeSearch: false }}>
          <Icon name={icon} size={20} />
          {name}
        </Link>
      ))}
      <Menu label={t.nav.more} icon="more" text={t.nav.more} kind="quiet">
        {entries.slice(inBar).map(({ to, icon, name }) => (
          <MenuItem key={to} icon={icon} onSelect={() => void go({ to })}>
            {name}
          </MenuItem>
        ))}
      </Menu>
    </nav>
  );
}
