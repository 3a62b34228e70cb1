/** The password of a server, hidden until one wants to see it, and a button that copies it. */
import { useState } from "react";
import { useTexts } from "../../texts/texts.tsx";
import { Button, Copy } from "../../ui/button.tsx";

export function Password({ text }: { text: string }) {
  const t = useTexts();
  const [isShown, setShown] = useState(false);
  return (
    <span className="line fixed tight">
      {isShown ? (
        <span className="mono">{text}</span>
      ) : (
        <Button size="small" onClick={() => setShown(true)}>
          {t.server.show}
        </Button>
      )}
      <Copy text={text} label={t.server.password} />
    </span>
  );
}
