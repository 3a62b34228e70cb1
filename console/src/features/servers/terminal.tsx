/** The serial console of a server. */
import type { Server } from "@brume/api/server.ts";
import { useEffect, useRef, useState } from "react";
import { useData } from "../../data/data.tsx";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/feedback.tsx";
import { State } from "../../ui/page.tsx";
import { Resizable } from "../../ui/resizable.tsx";
import { TerminalBox, type TerminalHandle } from "../../ui/terminalbox.tsx";
import { Credentials } from "./credentials.tsx";
import { plainOutput } from "./output.ts";
import { useTicket } from "./ticket.ts";

/** Lines of the log that are shown first: the prompt of the guest may be in them. */
const lastLines = 200;

type Phase = "closed" | "connecting" | "connected";

export function SerialConsole({ server }: { server: Server }) {
  const t = useTexts();
  const { client } = useData();
  const [phase, setPhase] = useState<Phase>("closed");
  const terminal = useRef<TerminalHandle>(null);
  const socket = useRef<WebSocket>(null);
  const open = useTicket(server.ID, "Serial");
  const isLeft = useRef(false);
  useEffect(
    () => () => {
      isLeft.current = true;
      socket.current?.close();
    },
    [],
  );

  const connect = async (): Promise<void> => {
    setPhase("connecting");
    try {
      const path = { id: server.ID };
      const [url, output] = await Promise.all([
        open(),
        client.text("readServerLog", { path, query: { tail: lastLines } }).catch(() => ""),
      ]);
      // The user has left the page before the response.
      if (isLeft.current) return;
      terminal.current?.restart(plainOutput(output));
      const line = new WebSocket(url);
      line.binaryType = "arraybuffer";
      line.addEventListener("open", () => {
        setPhase("connected");
        terminal.current?.focus();
      });
      line.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) =>
        terminal.current?.write(new Uint8Array(data)),
      );
      line.addEventListener("close", () => setPhase("closed"));
      socket.current = line;
    } catch {
      setPhase("closed");
    }
  };
  const send = (text: string): void => {
    if (socket.current?.readyState === WebSocket.OPEN) socket.current.send(new TextEncoder().encode(text));
  };
  const type = (text: string): void => {
    // The key Enter of a terminal.
    send(text.replaceAll("\n", "\r"));
    terminal.current?.focus();
  };

  if (!server.IsPowerOn && phase === "closed") return <Empty icon="terminal" title={t.terminal.off} />;
  return (
    <div className="stack tight">
      <div className="line apart">
        <State tone={phase === "connected" ? "good" : phase === "connecting" ? "busy" : "quiet"}>
          {t.terminal[phase]}
        </State>
        {phase === "connected" && (
          <Button size="small" onClick={() => socket.current?.close()}>
            {t.terminal.disconnect}
          </Button>
        )}
      </div>
      <Credentials server={server} type={phase === "connected" ? type : null} />
      <Resizable label={t.terminal.height} name="brume-console-height" height={520}>
        <TerminalBox handle={terminal} label={t.terminal.label} onInput={send} />
        {phase !== "connected" && (
          <div className="over">
            <Button kind="primary" isBusy={phase === "connecting"} onClick={() => void connect()}>
              {t.terminal.connect}
            </Button>
          </div>
        )}
      </Resizable>
      <p className="muted small">{t.terminal.hint}</p>
      <RequestPanel request={{ operation: "openConsole", path: { id: server.ID }, body: { Type: "Serial" } }} />
    </div>
  );
}
