/** The menu of who is signed in: connection, theme, language, sign-out. */
import { ApiError } from "@brume/api/client.ts";
import { useState } from "react";
import { useCell } from "../data/cell.ts";
import { useChange } from "../data/change.ts";
import { useAccount, useData } from "../data/data.tsx";
import { useLanguage, useTexts } from "../texts/texts.tsx";
import { Menu, MenuItem } from "../ui/menu.tsx";
import { State } from "../ui/page.tsx";

const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];
const stored = "brume-theme";

function readTheme(): Theme {
  const theme = localStorage.getItem(stored);
  return theme === "light" || theme === "dark" ? theme : "system";
}

function applyTheme(theme: Theme): void {
  if (theme === "system") {
    localStorage.removeItem(stored);
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem(stored, theme);
    document.documentElement.dataset["theme"] = theme;
  }
}

export function AccountMenu() {
  const t = useTexts();
  const data = useData();
  const account = useAccount();
  const connection = useCell(data.connection);
  const { language, setLanguage } = useLanguage();
  const [theme, setTheme] = useState(readTheme);
  const project = account?.Projects.find(({ ID }) => ID === account.Token.ProjectID)?.Name ?? "";
  // Without a response the session may still exist, so the page stays.
  const { run: signOut } = useChange(
    () =>
      data.client.deleteOwnSession().catch((error: unknown) => {
        if (!(error instanceof ApiError && error.status === 401)) throw error;
      }),
    { onDone: () => data.stop() },
  );
  return (
    <Menu label={t.nav.account} icon="user" kind="quiet">
      <div className="stack tight inset">
        <strong className="break">{project}</strong>
        <span className="muted small break">{t.nav.token(account?.Token.Name ?? "")}</span>
        <span>
          {connection === "open" ? (
            <State tone="good">{t.connection.open}</State>
          ) : (
            <State tone={connection === "lost" ? "warn" : "busy"}>{t.connection.connecting}</State>
          )}
        </span>
      </div>
      <hr />
      {themes.map((one) => (
        <MenuItem
          key={one}
          icon={one === theme ? "check" : one === "dark" ? "moon" : "sun"}
          onSelect={() => {
            applyTheme(one);
            setTheme(one);
          }}
        >
          {t.nav.theme[one]}
        </MenuItem>
      ))}
      <hr />
      <MenuItem icon={language === "en" ? "check" : "globe"} onSelect={() => setLanguage("en")}>
        English
      </MenuItem>
      <MenuItem icon={language === "ru" ? "check" : "globe"} onSelect={() => setLanguage("ru")}>
        Русский
      </MenuItem>
      <hr />
      <MenuItem icon="leave" onSelect={() => void signOut(undefined).catch(() => undefined)}>
        {t.nav.signOut}
      </MenuItem>
    </Menu>
  );
}
