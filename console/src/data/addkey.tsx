/** Adds an SSH key: on the page of the keys, and while one creates a server. */
import type { SshKey } from "@brume/api/catalog.ts";
import { useState } from "react";
import { useTexts } from "../texts/texts.tsx";
import { AreaField, TextField } from "../ui/field.tsx";
import { useData } from "./data.tsx";
import { FormDialog } from "./formdialog.tsx";
import { useOtherFields } from "./schemafields.tsx";

const placed: ReadonlySet<string> = new Set(["Title", "PublicKey"]);

interface AddKeyProps {
  /** Is called with the new key before the dialog closes. */
  readonly onAdded?: (key: SshKey) => void;
  readonly onClose: () => void;
}

export function AddKey({ onAdded, onClose }: AddKeyProps) {
  const t = useTexts();
  const { client } = useData();
  const [Title, setTitle] = useState("");
  const [PublicKey, setPublicKey] = useState("");
  const { others, renderOthers } = useOtherFields("createSshKey", placed);
  const body = { Title, PublicKey, ...others };
  // A private key is neither sent nor shown in the request.
  const isPrivate = /PRIVATE KEY|^PuTTY-User-Key-File/.test(PublicKey);
  return (
    <FormDialog
      title={t.access.addKey}
      action={t.access.addKey}
      request={{ operation: "createSshKey", body }}
      isComplete={Title !== "" && PublicKey !== "" && !isPrivate}
      // A key that is pasted before it has a name is checked, too.
      isChecked={PublicKey !== "" && !isPrivate}
      send={(options) => client.createSshKey({ body }, options)}
      done={() => t.access.keyAdded(Title)}
      onDone={(key) => {
        onAdded?.(key);
        onClose();
      }}
      onClose={onClose}
    >
      {(error) => {
        const titleError = error("/Title");
        return (
          <>
            <TextField
              label={t.common.name}
              required
              error={Title === "" ? undefined : titleError}
              value={Title}
              onChange={({ target }) => setTitle(target.value)}
            />
            <AreaField
              label={t.access.keyText}
              hint={t.access.keyHint}
              required
              error={isPrivate ? t.access.privateKey : error("/PublicKey")}
              value={PublicKey}
              onChange={({ target }) => {
                setPublicKey(target.value);
                // The comment of the line is a good title.
                const [, , comment = ""] = target.value.trim().split(/\s+/);
                if (Title === "" && /^ssh-|^ecdsa-|^sk-/.test(target.value)) setTitle(comment);
              }}
            />
            {renderOthers(error)}
          </>
        );
      }}
    </FormDialog>
  );
}
