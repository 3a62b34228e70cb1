/** The frame around all pages: navigation, top bar, and the notice of an interrupted connection. */
import { Outlet, useLocation, useMatches } from "@tanstack/react-router";
import { useEffect, useLayoutEffect, useState } from "react";
import { useCell } from "../data/cell.ts";
import { useData, useMays } from "../data/data.tsx";
import { useTexts } from "../texts/texts.tsx";
import { Button } from "../ui/button.tsx";
import { Skeleton } from "../ui/feedback.tsx";
import { Icon } from "../ui/icon.tsx";
import { InTurn, useTurn } from "../ui/later.ts";
import { useIsPhone } from "../ui/media.ts";
import { HeadSlotProvider, useDrawn } from "../ui/page.tsx";
import { useDropToasts } from "../ui/toast.tsx";
import { AccountMenu } from "./account.tsx";
import { ConfirmNotices } from "./confirmnotice.tsx";
import { NotAllowed } from "./failure.tsx";
import { BottomBar, Nav } from "./nav.tsx";
import { Palette } from "./palette.tsx";
import { RunningActions } from "./running.tsx";

/** Milliseconds without a connection after which a notice is shown: most interruptions are shorter. */
const patience = 5000;

/** Draws the frame in a task of its own, after the router has found the page. */
export const Frame = () => (
  <InTurn>
    <DrawnFrame />
  </InTurn>
);

function DrawnFrame() {
  const t = useTexts();
  useDrawn();
  useUndoEnd();
  const isPhone = useIsPhone();
  const [isSearching, setSearching] = useState(false);
  // Before the page is drawn: what a user presses then is not lost.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setSearching((is) => !is);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <>
      <a className="skip" href="#main">
        {t.common.skip}
      </a>
      <div className="frame">
        {!isPhone && <Nav />}
        <div>
          <header className="top">
            <button type="button" className="search" onClick={() => setSearching(true)} aria-haspopup="dialog">
              <Icon name="search" />
              <span className="truncate">{t.nav.search}</span>
              <kbd>Ctrl K</kbd>
            </button>
            <div className="end">
              <InTurn>
                <RunningActions />
                <AccountMenu />
              </InTurn>
            </div>
          </header>
          <ConnectionNotice />
          <InTurn>
            <ConfirmNotices />
          </InTurn>
          <main className="main" id="main" tabIndex={-1}>
            <HeadSlotProvider>
              <Allowed />
            </HeadSlotProvider>
          </main>
        </div>
      </div>
      {isPhone && (
        <InTurn>
          <BottomBar />
        </InTurn>
      )}
      {isSearching && <Palette onClose={() => setSearching(false)} />}
    </>
  );
}

/** Ends each offer to undo a change when the user leaves its page, or when its object is deleted. */
function useUndoEnd(): void {
  const drop = useDropToasts();
  const { arrived } = useData();
  const { pathname } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs after each change of the page
  useEffect(() => drop(({ undo }) => undo !== undefined && !location.pathname.endsWith(undo.page)), [drop, pathname]);
  useEffect(
    () =>
      arrived.subscribe(() => {
        const deleted = new Set(
          arrived
            .get()
            .flatMap(({ Type, Resource, ResourceID }) =>
              Type === `${Resource}.deleted` ? [`${Resource}:${ResourceID}`] : [],
            ),
        );
        if (deleted.size > 0) drop(({ undo }) => undo !== undefined && deleted.has(undo.of));
      }),
    [arrived, drop],
  );
}

/**
 * The page, or why the token may not see it: a request that the service would reject is not sent. The page follows the frame in a task of its own,
 * which keeps a slow phone responsive.
 */
function Allowed() {
  const hasTurn = useTurn();
  const may = useMays();
  const scopes = useMatches({ select: (matches) => matches.map(({ staticData }) => staticData.scope) });
  const missing = scopes.find((scope) => !may(scope));
  if (!hasTurn) return <Skeleton lines={6} />;
  return missing === undefined ? <Outlet /> : <NotAllowed scope={missing} />;
}

function ConnectionNotice() {
  const t = useTexts();
  const data = useData();
  const isLost = useCell(data.connection) === "lost";
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (!isLost) {
      setShown(false);
      return undefined;
    }
    const timer = setTimeout(() => setShown(true), patience);
    return () => clearTimeout(timer);
  }, [isLost]);
  return (
    <div role="status">
      {isShown && (
        <div className="notice">
          <Icon name="warn" />
          <span className="grow">{t.connection.lost}</span>
          <Button size="small" onClick={() => data.retry()}>
            {t.connection.retry}
          </Button>
        </div>
      )}
    </div>
  );
}
