/** Reads of a page that failed: the first error, and a button that repeats them. */
import type { UseQueryResult } from "@tanstack/react-query";
import { useTexts } from "../texts/texts.tsx";
import { ErrorBox } from "../ui/feedback.tsx";
import { errorText } from "./errortext.ts";

/** What the component needs of a read. */
export type Read = Pick<UseQueryResult, "error" | "refetch">;

/** Shows nothing if no read has failed. */
export function Unread({ of }: { of: readonly Read[] }) {
  const t = useTexts();
  const failed = of.filter(({ error }) => error !== null);
  const [first] = failed;
  if (first === undefined) return null;
  return (
    <ErrorBox
      text={errorText(first.error, t)}
      onRetry={() => {
        for (const { refetch } of failed) void refetch();
      }}
    />
  );
}
