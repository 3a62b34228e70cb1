/** Who may do what: tokens, SSH keys, sessions of browsers, projects. */
import { Link, useSearch } from "@tanstack/react-router";
import { useMay } from "../../data/data.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Keys } from "./keys.tsx";
import { Projects } from "./projects.tsx";
import { Sessions } from "./sessions.tsx";
import { Tokens } from "./tokens.tsx";

export function Access() {
  const t = useTexts();
  const isAdmin = useMay("account:admin");
  const maySeeKeys = useMay("server:read");
  const search = useSearch({ from: "/access" });
  const tabs = [
    ...(isAdmin ? (["tokens"] as const) : []),
    ...(maySeeKeys ? (["keys"] as const) : []),
    "sessions" as const,
    ...(isAdmin ? (["projects"] as const) : []),
  ];
  const tab = tabs.find((name) => name === search.tab) ?? tabs[0];
  const parts = { tokens: Tokens, keys: Keys, sessions: Sessions, projects: Projects };
  const Part = parts[tab ?? "sessions"];
  return (
    <div className="stack">
      <PageHead title={t.access.title} />
      <Tabs label={t.access.tabsLabel}>
        {tabs.map((name) => (
          <Link key={name} to="/access" search={{ tab: name }} aria-current={name === tab ? "page" : undefined}>
            {t.access.tabs[name]}
          </Link>
        ))}
      </Tabs>
      <Part />
    </div>
  );
}
