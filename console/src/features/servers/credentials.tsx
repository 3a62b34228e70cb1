/** User and password of a server above its consoles, and the button that types the password at a login. */
import type { Server } from "@brume/api/server.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Password } from "./password.tsx";

interface CredentialsProps {
  readonly server: Server;
  /** Types into the console; null: it is not connected. */
  readonly type: ((text: string) => void) | null;
}

export function Credentials({ server: { AdminUserName, AdminPassword }, type }: CredentialsProps) {
  const t = useTexts();
  return (
    <div className="line">
      <span className="muted hidden-narrow">{t.server.user}</span>
      <span className="mono">{AdminUserName}</span>
      {AdminPassword !== "" && (
        <>
          <span className="muted">{t.server.password}</span>
          <Password text={AdminPassword} />
          <Button size="small" icon="access" disabled={type === null} onClick={() => type?.(`${AdminPassword}\n`)}>
            <span className="hidden-narrow">{t.terminal.typePassword}</span>
          </Button>
        </>
      )}
    </div>
  );
}
