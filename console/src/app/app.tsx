/** The composition of the console: texts, data, messages and pages. Without a session it shows the sign-in. */
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useCell } from "../data/cell.ts";
import { AccountProvider, createData, type Data, DataProvider, readAccount, readNewest } from "../data/data.tsx";
import { useLeaveWarning } from "../data/draft.ts";
import type { FirstReads } from "../data/firstreads.ts";
import { SignIn } from "../features/signin/signin.tsx";
import { Unopened } from "../shell/failure.tsx";
import { SpeechProvider } from "../texts/texts.tsx";
import { NoticeSlotsProvider } from "../ui/dialog.tsx";
import { InTurn } from "../ui/later.ts";
import { Toasts, useDropToasts } from "../ui/toast.tsx";
import type { createAppRouter } from "./router.tsx";

type AppRouter = ReturnType<typeof createAppRouter>;

export function App({ firstReads, router }: { firstReads: FirstReads; router: AppRouter }) {
  const [data] = useState(() => createData(firstReads));
  useLeaveWarning(data.drafts);
  return (
    <SpeechProvider>
      <DataProvider value={data}>
        <QueryClientProvider client={data.queries}>
          <Toasts>
            <NoticeSlotsProvider>
              <Gate data={data} router={router} />
            </NoticeSlotsProvider>
          </Toasts>
        </QueryClientProvider>
      </DataProvider>
    </SpeechProvider>
  );
}

function Gate({ data, router }: { data: Data; router: AppRouter }) {
  const state = useCell(data.signedIn);
  const drop = useDropToasts();
  // Messages name objects of the token, and offer to undo its changes.
  useEffect(() => {
    if (state !== "in") drop(() => true);
  }, [state, drop]);
  if (state === "unknown") return <Opening data={data} />;
  if (state === "out" || state === "ended")
    return <SignIn hasEnded={state === "ended"} onDone={() => data.signedIn.set("unknown")} />;
  return (
    <AccountProvider>
      <InTurn>
        <RouterProvider router={router} />
      </InTurn>
    </AccountProvider>
  );
}

const longestPause = 15_000;

/**
 * Reads who is signed in; the client reports that there is no session. After another error it reads again, with growing pauses or when the
 * user requests it. The address stays, so that a sign-in leads to the page that was requested.
 */
function Opening({ data }: { data: Data }) {
  const [tries, setTries] = useState(0);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    let isLeft = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    Promise.all([data.queries.query(readAccount(data.client)), readNewest(data.client)]).then(
      ([account, newest]) => data.start(account, newest),
      (reason: unknown) => {
        if (isLeft || data.signedIn.get() !== "unknown") return;
        setError(reason);
        timer = setTimeout(() => setTries(tries + 1), Math.min(longestPause, 1000 * 2 ** tries));
      },
    );
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [data, tries]);
  return error === null ? null : <Unopened error={error} onRetry={() => setTries(tries + 1)} />;
}
