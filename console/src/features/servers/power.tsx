/** The menu of power actions of a server. What the state table of the contract forbids is disabled, with the reason. */
import type { RequestType } from "@brume/api/action.ts";
import type { Server } from "@brume/api/server.ts";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useStarted } from "../../data/started.ts";
import { whyNot } from "../../data/whynot.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { SelectField } from "../../ui/field.tsx";
import type { IconName } from "../../ui/icon.tsx";
import { Menu, MenuItem } from "../../ui/menu.tsx";
import { CopyServer, TakeImage } from "./copies.tsx";

/** Power actions in the order of the menu. */
const powerActions = [
  ["PowerOn", "play"],
  ["ShutDownGuestOS", "power"],
  ["RebootGuestOS", "refresh"],
  ["PowerReboot", "bolt"],
  ["PowerOff", "unplug"],
] as const satisfies readonly (readonly [RequestType, IconName])[];
type PowerAction = (typeof powerActions)[number][0];

/** Actions that cut the power of a guest. */
const hardActions = ["PowerReboot", "PowerOff"] as const;
type HardAction = (typeof hardActions)[number];
const isHard = (type: RequestType): type is HardAction => (hardActions as readonly RequestType[]).includes(type);

/** Returns the function that starts an action of a server. */
export function useStartAction() {
  const t = useTexts();
  const { client } = useData();
  const started = useStarted();
  return useChange(
    ({ server, type }: { server: Server; type: PowerAction }) =>
      client.startAction({ path: { id: server.ID }, body: { Type: type } }),
    { done: (action, { server, type }) => started(action, t.servers.starting(server.Name, t.servers.running[type])) },
  );
}

interface DeleteServerProps {
  readonly server: Server;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** Deletes a server, after its name was typed. */
export function DeleteServer({ server, ...rest }: DeleteServerProps) {
  const t = useTexts();
  const { client } = useData();
  return (
    <ConfirmRequest
      title={t.server.deleteTitle(server.Name)}
      action={t.common.delete}
      typed={server.Name}
      request={{ operation: "deleteServer", path: { id: server.ID } }}
      send={() => client.deleteServer({ path: { id: server.ID } })}
      done={() => t.servers.deleted(server.Name)}
      {...rest}
    >
      <p>{t.server.deleteAbout}</p>
    </ConfirmRequest>
  );
}

type Open = "delete" | "copy" | "image" | "commands" | HardAction;

/** `isLarge`: on the page of the server, which deletes it in its settings as the pages of other objects do. */
export function PowerMenu({ server, isLarge = false }: { server: Server; isLarge?: boolean }) {
  const t = useTexts();
  const [open, setOpen] = useState<Open | null>(null);
  const close = (): void => setOpen(null);
  return (
    <>
      <Menu
        label={`${t.common.more}: ${server.Name}`}
        icon="more"
        {...(isLarge ? {} : { kind: "quiet" as const, size: "small" as const })}
      >
        <PowerItems server={server} hasDelete={!isLarge} onOpen={setOpen} />
      </Menu>
      {open === "delete" && <DeleteServer server={server} onClose={close} />}
      {open === "commands" && <Commands server={server} onClose={close} />}
      {(open === "PowerReboot" || open === "PowerOff") && <CutPower server={server} type={open} onClose={close} />}
      {open === "copy" && <CopyServer server={server} onClose={close} />}
      {open === "image" && <TakeImage server={server} onClose={close} />}
    </>
  );
}

/** Cuts the power, after a warning. */
function CutPower({ server, type, onClose }: { server: Server; type: HardAction; onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const started = useStarted();
  const request = { path: { id: server.ID }, body: { Type: type } };
  const action = t.servers.actions[type];
  return (
    <ConfirmRequest
      title={t.servers.cutTitle(action, server.Name)}
      action={action}
      request={{ operation: "startAction", ...request }}
      send={() => client.startAction(request)}
      done={(made) => started(made, t.servers.starting(server.Name, t.servers.running[type]))}
      onClose={onClose}
    >
      <p>{t.servers.cutAbout[type]}</p>
    </ConfirmRequest>
  );
}

/** The power actions as command, curl and TypeScript. */
function Commands({ server, onClose }: { server: Server; onClose: () => void }) {
  const t = useTexts();
  const [type, setType] = useState<RequestType>(server.IsPowerOn ? "ShutDownGuestOS" : "PowerOn");
  const title = t.servers.commandsTitle(server.Name);
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        <SelectField
          label={t.server.action}
          value={type}
          options={powerActions.map(([name]) => [name, t.servers.actions[name]])}
          onChange={({ target }) => setType(target.value as RequestType)}
        />
        <RequestPanel isMain request={{ operation: "startAction", path: { id: server.ID }, body: { Type: type } }} />
      </div>
    </Dialog>
  );
}

interface PowerItemsProps {
  readonly server: Server;
  readonly hasDelete: boolean;
  readonly onOpen: (open: Open) => void;
}

/** The items, which exist only while the menu is open: a long list has a menu in each row. */
function PowerItems({ server, hasDelete, onOpen }: PowerItemsProps) {
  const t = useTexts();
  const { run } = useStartAction();
  const go = useNavigate();
  return (
    <>
      {powerActions.map(([type, icon]) => (
        <MenuItem
          key={type}
          icon={icon}
          why={whyNot(server, type, t)}
          onSelect={() => (isHard(type) ? onOpen(type) : void run({ server, type }).catch(() => undefined))}
        >
          {t.servers.actions[type]}
        </MenuItem>
      ))}
      <MenuItem icon="terminal" onSelect={() => onOpen("commands")}>
        {t.servers.commands}
      </MenuItem>
      <hr />
      <MenuItem
        icon="edit"
        why={whyNot(server, "Resize", t)}
        onSelect={() =>
          void go({
            to: "/servers/$id",
            params: { id: String(server.ID) },
            search: { tab: "settings" },
            hash: "resize",
          })
        }
      >
        {t.server.resize}
      </MenuItem>
      <MenuItem icon="copy" why={whyNot(server, "Copy", t)} onSelect={() => onOpen("copy")}>
        {t.copies.copy}
      </MenuItem>
      <MenuItem icon="image" why={whyNot(server, "Copy", t)} onSelect={() => onOpen("image")}>
        {t.copies.image}
      </MenuItem>
      {hasDelete && (
        <>
          <hr />
          <MenuItem icon="trash" isDanger why={whyNot(server, "Delete", t)} onSelect={() => onOpen("delete")}>
            {t.common.delete}
          </MenuItem>
        </>
      )}
    </>
  );
}
