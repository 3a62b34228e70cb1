/** The error of a form that no field shows. */
import { useTexts } from "../texts/texts.tsx";
import { ErrorBox } from "../ui/feedback.tsx";
import { errorText, type PlacedErrors } from "./errortext.ts";

interface UnplacedProps {
  readonly error: unknown;
  readonly errors: PlacedErrors;
}

/** Is rendered after the fields, also those that are components: each takes its error when it is rendered. */
export function Unplaced({ error, errors }: UnplacedProps) {
  const t = useTexts();
  return error === null || errors.areTaken() ? null : <ErrorBox text={errorText(error, t)} />;
}
