/** What the page of an object shows instead of it: that it does not exist, or why it could not be read; with the way to the list. */
import { Link, type LinkProps } from "@tanstack/react-router";
import { useTexts } from "../texts/texts.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Empty, ErrorBox } from "../ui/feedback.tsx";
import type { IconName } from "../ui/icon.tsx";
import { errorText } from "./errortext.ts";
import { isMissing } from "./follow.ts";

interface MissingProps {
  readonly error: Error;
  readonly onRetry: () => void;
  readonly icon: IconName;
  /** That the object does not exist. */
  readonly title: string;
  /** The list of objects of this kind, and its name. */
  readonly list: LinkProps;
  readonly name: string;
}

export function Missing({ error, onRetry, icon, title, list, name }: MissingProps) {
  const t = useTexts();
  if (isMissing(error))
    return (
      <Empty
        isPage
        icon={icon}
        title={title}
        action={
          <Link {...list} className={buttonClass("primary")}>
            {name}
          </Link>
        }
      >
        {t.errors.missing}
      </Empty>
    );
  return (
    <div className="stack">
      <Link {...list}>{name}</Link>
      <ErrorBox isPage text={errorText(error, t)} onRetry={onRetry} />
    </div>
  );
}
