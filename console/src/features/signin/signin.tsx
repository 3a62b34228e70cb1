/** Sign-in: exchanges a token for the session of this browser. */
import { ApiError } from "@brume/api/client.ts";
import { type SubmitEvent, useState } from "react";
import { useChange } from "../../data/change.ts";
import { browserName, signIn } from "../../data/client.ts";
import { errorText } from "../../data/errortext.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { ErrorBox, Note } from "../../ui/feedback.tsx";
import { TextField } from "../../ui/field.tsx";
import mark from "../../ui/mark.svg";
import { useDrawn } from "../../ui/page.tsx";

/** `hasEnded`: the user did not sign out here. */
export function SignIn({ hasEnded, onDone }: { hasEnded: boolean; onDone: () => void }) {
  const t = useTexts();
  useDrawn();
  const [token, setToken] = useState("");
  const { run, isBusy, error } = useChange((value: string) => signIn(value, browserName(navigator.userAgent)), {
    onDone,
    isQuiet: true,
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    run(token.trim()).catch(() => undefined);
  };
  const fieldError = errorOf(error, t.signIn);
  return (
    <main className="sign-in">
      <div className="stack wide">
        <div className="line">
          <img src={mark} alt="" className="mark large" width={44} height={44} />
          <h1>{t.signIn.title}</h1>
        </div>
        {hasEnded && <Note>{t.signIn.ended}</Note>}
        <form onSubmit={submit} className="stack">
          <TextField
            label={t.signIn.token}
            hint={t.signIn.hint}
            error={fieldError}
            type="password"
            name="token"
            autoComplete="current-password"
            spellCheck={false}
            autoFocus
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
          {error !== null && fieldError === undefined && <ErrorBox text={errorText(error, t)} />}
          <Button type="submit" kind="primary" isBusy={isBusy}>
            {t.signIn.action}
          </Button>
        </form>
        <p className="muted small break">
          {t.signIn.where} {t.signIn.about}
        </p>
      </div>
    </main>
  );
}

/** Returns the error of the field; undefined: there is none, or the field is not its cause. */
function errorOf(error: unknown, t: ReturnType<typeof useTexts>["signIn"]): string | undefined {
  if (error instanceof TypeError) return t.malformed;
  if (!(error instanceof ApiError)) return undefined;
  if (error.code === "token_expired") return t.expired;
  if (error.code === "rate_limited") return t.tooMany;
  return error.status === 401 ? t.wrong : undefined;
}
