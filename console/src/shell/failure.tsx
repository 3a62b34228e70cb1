/** What is shown instead of a page that failed or does not exist. */
import type { Scope } from "@brume/api/operation.ts";
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { errorText } from "../data/errortext.ts";
import { useTexts } from "../texts/texts.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Empty, ErrorBox } from "../ui/feedback.tsx";
import { useDrawn } from "../ui/page.tsx";

export function Failure({ error, reset }: ErrorComponentProps) {
  return <ErrorBox isPage text={errorText(error, useTexts())} onRetry={reset} />;
}

/** Shown instead of all pages while the account cannot be read. */
export function Unopened({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  useDrawn();
  return (
    <main className="main">
      <ErrorBox isPage text={errorText(error, useTexts())} onRetry={onRetry} />
    </main>
  );
}

export function NotAllowed({ scope }: { scope: Scope | readonly Scope[] }) {
  const t = useTexts();
  return (
    <Empty isPage icon="lock" title={t.errors.notAllowed}>
      {t.errors.needsScope([scope].flat().join(" / "))}
    </Empty>
  );
}

export function NotFound() {
  const t = useTexts();
  return (
    <Empty
      isPage
      icon="search"
      title={t.errors.notFound}
      action={
        <Link to="/" className={buttonClass("primary")}>
          {t.nav.overview}
        </Link>
      }
    >
      {t.errors.notFoundAbout}
    </Empty>
  );
}
