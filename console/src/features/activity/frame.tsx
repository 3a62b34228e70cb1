/** What has happened: events as they happen, the audit log, and webhooks, which send events to other programs. */
import { Link, Outlet } from "@tanstack/react-router";
import { useMay } from "../../data/data.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";

const active = { "aria-current": "page" } as const;

export function ActivityFrame() {
  const t = useTexts();
  const isAdmin = useMay("account:admin");
  return (
    <div className="stack">
      <PageHead title={t.activity.title} />
      {isAdmin && (
        <Tabs label={t.activity.tabsLabel}>
          {(["/activity", "/activity/audit", "/activity/webhooks"] as const).map((to, index) => (
            <Link key={to} to={to} activeProps={active} activeOptions={{ exact: index === 0, includeSearch: false }}>
              {Object.values(t.activity.tabs)[index]}
            </Link>
          ))}
        </Tabs>
      )}
      <Outlet />
    </div>
  );
}
