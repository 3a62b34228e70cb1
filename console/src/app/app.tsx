/** The composition of the console: texts, data, messages and pages. Without a session it shows the sign-in. */
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useCell } from "../data/cell.ts";
import { createData, type Data, DataProvider, readAccount, readNewest } from "../data/data.tsx";
import type { FirstReads } from "../data/firstreads.ts";
import { SignIn } from "../features/signin/signin.tsx";
import { SpeechProvider } from "../texts/texts.tsx";
import { Toasts } from "../ui/toast.tsx";
import { createAppRouter } from "./router.tsx";

export function App({ firstReads }: { firstReads: FirstReads }) {
  const [data] = useState(() => createData(firstReads));
  const [router] = useState(createAppRouter);
  return (
    <SpeechProvider>
      <DataProvider value={data}>
        <QueryClientProvider client={data.queries}>
          <Toasts>
            <Gate data={data} router={router} />
          </Toasts>
        </QueryClientProvider>
      </DataProvider>
    </SpeechProvider>
  );
}

/** Reads who is signed in. The address stays, so that a sign-in leads to the page that was requested. */
function Gate({ data, router }: { data: Data; router: ReturnType<typeof createAppRouter> }) {
  const state = useCell(data.signedIn);
  useEffect(() => {
    if (state !== "unknown") return;
    Promise.all([data.queries.query(readAccount(data.client)), readNewest(data.client)]).then(
      ([, newest]) => data.start(newest),
      () => data.signedIn.set("out"),
    );
  }, [state, data]);
  if (state === "unknown") return null;
  if (state === "out") return <SignIn onDone={() => data.signedIn.set("unknown")} />;
  return <RouterProvider router={router} />;
}
