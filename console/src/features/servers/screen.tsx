/** The screen of a server: what a monitor would show, with keyboard and mouse. */
import type { Server } from "@brume/api/server.ts";
import { useRef, useState } from "react";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/feedback.tsx";
import { State } from "../../ui/page.tsx";
import { Resizable } from "../../ui/resizable.tsx";
import { ScreenBox, type ScreenHandle } from "../../ui/screenbox.tsx";
import { useToast } from "../../ui/toast.tsx";
import { Credentials } from "./credentials.tsx";
import { useTicket } from "./ticket.ts";

export function GraphicalConsole({ server }: { server: Server }) {
  const t = useTexts();
  const toast = useToast();
  const open = useTicket(server.ID, "Vnc");
  const [url, setUrl] = useState<string | null>(null);
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const screen = useRef<ScreenHandle>(null);
  const connect = (): void => {
    setBusy(true);
    open()
      .then(setUrl, () => undefined)
      .finally(() => setBusy(false));
  };
  const type = (text: string): void => {
    screen.current?.type(text);
    screen.current?.focus();
  };
  const paste = (): Promise<void> =>
    navigator.clipboard.readText().then(type, () => toast({ kind: "bad", ...t.terminal.notPasted }));
  const phase = isOpen ? "connected" : isBusy || url !== null ? "connecting" : "closed";
  if (!server.IsPowerOn && url === null) return <Empty icon="screen" title={t.terminal.off} />;
  return (
    <div className="stack tight">
      <div className="line apart">
        <State tone={isOpen ? "good" : phase === "connecting" ? "busy" : "quiet"}>{t.terminal[phase]}</State>
        <span className="line">
          {isOpen && (
            <>
              {"clipboard" in navigator && (
                <Button size="small" onClick={() => void paste()}>
                  {t.terminal.paste}
                </Button>
              )}
              <Button size="small" onClick={() => screen.current?.sendCtrlAltDel()}>
                Ctrl+Alt+Del
              </Button>
              <Button size="small" onClick={() => setUrl(null)}>
                {t.terminal.disconnect}
              </Button>
            </>
          )}
        </span>
      </div>
      <Credentials server={server} type={isOpen ? type : null} />
      <Resizable label={t.terminal.height} name="brume-screen-height" height={640}>
        {url === null ? (
          <div className="terminal screen">
            <div className="over">
              <Button kind="primary" isBusy={isBusy} onClick={connect}>
                {t.terminal.connect}
              </Button>
            </div>
          </div>
        ) : (
          <ScreenBox
            handle={screen}
            url={url}
            label={t.terminal.screenLabel}
            onOpen={() => {
              setOpen(true);
              screen.current?.focus();
            }}
            onClose={() => {
              setOpen(false);
              setUrl(null);
            }}
          />
        )}
      </Resizable>
      <p className="muted small">{t.terminal.screenHint}</p>
      <RequestPanel request={{ operation: "openConsole", path: { id: server.ID }, body: { Type: "Vnc" } }} />
    </div>
  );
}
