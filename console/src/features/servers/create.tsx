/**
 * Creates a server on one page. The request is checked by the service as one types (`dryRun`), and shown as command, curl and TypeScript.
 * Fields of the contract that have no input of their own appear under "Advanced".
 */
import { ApiError, type ChangeOptions } from "@brume/api/client.ts";
import type { CreateServerInput } from "@brume/api/serverinput.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type SubmitEvent, useEffect, useMemo, useState } from "react";
import { AddKey } from "../../data/addkey.tsx";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { useDryRun } from "../../data/dryrun.ts";
import { errorText, placeErrors } from "../../data/errortext.ts";
import { imageName, isReady } from "../../data/image.ts";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { OtherFields } from "../../data/schemafields.tsx";
import { Unplaced } from "../../data/unplaced.tsx";
import { Unread } from "../../data/unread.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { AreaField, Check, Choice, focusInvalid, NumberField, TextField } from "../../ui/field.tsx";
import { useMedia } from "../../ui/media.ts";
import { PageHead, Panel } from "../../ui/page.tsx";
import { useNetworkOptions } from "./networkoptions.ts";

/** Servers that one request can create. */
const mostMembers = 100;

/** Shown in the preview of the request until there is a name. */
const exampleName = "web-1";

/** Offered sizes: cores, MB, GB. */
const sizes = [
  { id: "tiny", CPU: 1, RAM: 256, HDD: 1 },
  { id: "small", CPU: 1, RAM: 1024, HDD: 10 },
  { id: "medium", CPU: 2, RAM: 2048, HDD: 20 },
  { id: "large", CPU: 4, RAM: 8192, HDD: 80 },
] as const;

/** Fields with an input of their own, and those without effect; the others are generated from the contract. */
const placed = new Set([
  "Name",
  "ImageID",
  "CPU",
  "RAM",
  "HDD",
  "NetworkID",
  "SshKeys",
  "UserData",
  "IsNeedSysprep",
  "HDDType",
]);

/** Tiny Linux, which is selected first, knows these keys too. */
const template = `#cloud-config
write_files:
  - path: /etc/motd
    content: |
      Set up by user data.
runcmd:
  - echo done > /root/first-boot
`;

export function ServerCreate() {
  const t = useTexts();
  // The form has one column on narrower screens, as in base.css.
  const isWide = useMedia("(min-width: 1100px)");
  const format = useFormat();
  const go = useNavigate();
  const { client } = useData();
  const queries = queriesOf(client);
  const images = useQuery(queries.images());
  const keys = useQuery(queries.sshKeys());
  const networks = useNetworkOptions();
  const capacity = useQuery(queries.locations()).data?.[0]?.Capacity;
  const { network } = useSearch({ from: "/servers/create" });
  const [form, setForm] = useState<Partial<CreateServerInput>>({
    Name: "",
    ...sizeOf(sizes[0]),
    ...(network !== undefined && { NetworkID: Number(network) }),
  });
  const [isCustom, setCustom] = useState(false);
  const set = (part: Partial<Record<keyof CreateServerInput, unknown>>): void =>
    setForm((before) => ({ ...before, ...part }) as Partial<CreateServerInput>);
  const [isAdding, setAdding] = useState(false);
  /** Undefined: the field is empty, and one server is created. */
  const [entered, setCount] = useState<number | undefined>(1);
  const count = entered ?? 1;
  const isGroup = count !== 1;
  const onlyKey = keys.data?.length === 1 ? keys.data[0]?.ID : undefined;
  const isWindows = images.data?.find(({ ID }) => String(ID) === form.ImageID)?.OperatingSystemType === "Windows";
  // The only key is that of the user, who would be locked out without it.
  const SshKeys = useMemo(
    () => form.SshKeys ?? (onlyKey === undefined || isWindows ? [] : [onlyKey]),
    [form.SshKeys, onlyKey, isWindows],
  );
  const body = useMemo(() => withoutEmpty({ ...form, SshKeys }), [form, SshKeys]);
  const group = { ...body, Count: count };
  const shownName = body.Name || exampleName;

  // A key that was deleted after it was selected stays in the request until the user removes it.
  const known = keys.data ?? [];
  const gone = SshKeys.filter((id) => !known.some(({ ID }) => ID === id));
  const shownKeys = [...known, ...gone.map((ID) => ({ ID, Title: String(ID), Fingerprint: "" }))];

  const all = images.data ?? [];
  const usable = all.filter(({ Type, State }) => Type !== "Backup" && State !== "Failed");
  const image = usable.find(({ ID }) => String(ID) === form.ImageID);
  const firstImage = usable.find(isReady);
  useEffect(() => {
    if (form.ImageID === undefined && firstImage !== undefined) set({ ImageID: String(firstImage.ID) });
  }, [firstImage, form.ImageID]);
  // The selected size is never one that is too small for the image.
  const isTooSmall = (size: { RAM?: number; HDD?: number }): boolean =>
    image !== undefined && (Number(size.RAM) < image.MinRAM || Number(size.HDD) < image.Hdd);
  const fitting = !isCustom && isTooSmall(form) ? sizes.find((size) => !isTooSmall(size)) : undefined;
  useEffect(() => {
    if (fitting !== undefined) set(sizeOf(fitting));
  }, [fitting]);

  const send = (options: ChangeOptions): Promise<unknown> =>
    isGroup ? client.createBatch({ body: group }, options) : client.createServer({ body }, options);
  const check = useDryRun(body.Name === "" ? null : group, (_, signal) => send({ dryRun: true, signal }));
  const create = useChange(() => send({}), {
    onDone: (made) => {
      const { ID } = made as { readonly ID: number };
      void go(
        isGroup
          ? { to: "/servers", search: { group: String(ID) } }
          : { to: "/servers/$id", params: { id: String(ID) } },
      );
    },
    isQuiet: true,
    request: group,
  });
  const error = create.error ?? check.error;
  const errors = placeErrors(error, t);
  const quotaError =
    error instanceof ApiError && error.code === "quota_exceeded" ? errorText(error, t).cause : undefined;
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    create.run(undefined).catch(() => focusInvalid(form));
  };
  if (images.error) return <ErrorBox text={errorText(images.error, t)} onRetry={() => void images.refetch()} />;

  return (
    <>
      <form onSubmit={submit}>
        <PageHead crumb={<Link to="/servers">{t.servers.title}</Link>} title={t.create.title} />
        <div className="split">
          <div className="stack">
            <Panel>
              <div className="columns">
                <TextField
                  label={t.common.name}
                  hint={t.create.nameHint}
                  error={errors.at("/Name")}
                  required
                  autoFocus
                  maxLength={64}
                  placeholder={exampleName}
                  value={form.Name ?? ""}
                  onChange={(event) => set({ Name: event.target.value })}
                />
                <NumberField
                  label={t.create.count}
                  hint={isGroup ? t.create.countAbout : undefined}
                  error={errors.at("/Count") ?? (isGroup ? quotaError : undefined)}
                  min={1}
                  max={mostMembers}
                  value={entered}
                  onChange={setCount}
                />
              </div>
            </Panel>
            <Panel title={t.create.image}>
              {images.data === undefined ? (
                <Skeleton lines={3} />
              ) : (
                <fieldset className="choices" aria-label={t.create.image}>
                  {usable.map(({ ID, Name, DisplayName, OperatingSystemType, MinRAM, Hdd, State }) => (
                    <Choice
                      key={ID}
                      name="image"
                      title={imageName({ Name, DisplayName })}
                      about={[
                        OperatingSystemType,
                        t.create.needs(format.megabytes(MinRAM), format.megabytes(Hdd * 1024)),
                        t.create.imageState[State],
                      ]
                        .filter((part) => part !== "")
                        .join(" · ")}
                      disabled={!isReady({ State })}
                      checked={String(ID) === form.ImageID}
                      onChange={() => set({ ImageID: String(ID) })}
                    />
                  ))}
                </fieldset>
              )}
            </Panel>
            <Panel title={t.create.size}>
              <div className="stack">
                <fieldset className="choices small" aria-label={t.create.size}>
                  {sizes.map((size) => (
                    <Choice
                      key={size.id}
                      name="size"
                      title={`${size.CPU} CPU · ${format.megabytes(size.RAM)}`}
                      about={`${t.create.disk} ${format.megabytes(size.HDD * 1024)}`}
                      disabled={isTooSmall(size)}
                      checked={!isCustom && form.CPU === size.CPU && form.RAM === size.RAM && form.HDD === size.HDD}
                      onChange={() => {
                        setCustom(false);
                        set(sizeOf(size));
                      }}
                    />
                  ))}
                  <Choice name="size" title={t.create.custom} checked={isCustom} onChange={() => setCustom(true)} />
                </fieldset>
                {isCustom && (
                  <div className="columns">
                    {(
                      [
                        ["CPU", t.create.cpu, ""],
                        ["RAM", t.create.memory, "MB"],
                        ["HDD", t.create.disk, "GB"],
                      ] as const
                    ).map(([name, label, unit]) => (
                      <NumberField
                        key={name}
                        label={label}
                        unit={unit}
                        error={errors.at(`/${name}`)}
                        value={form[name]}
                        onChange={(value) => set({ [name]: value })}
                      />
                    ))}
                  </div>
                )}
                {capacity && (
                  <p className="muted small">
                    {t.create.free(format.megabytes(capacity.FreeRAM), format.megabytes(capacity.FreeHDD * 1024))}
                  </p>
                )}
              </div>
            </Panel>
            <Panel title={t.create.network}>
              <fieldset className="choices" aria-label={t.create.network}>
                <Choice
                  name="network"
                  title={t.create.sharedNetwork}
                  about={t.create.sharedAbout}
                  checked={form.NetworkID === undefined}
                  onChange={() => set({ NetworkID: undefined })}
                />
                {networks.options.map(({ id, name, about }) => (
                  <Choice
                    key={id}
                    name="network"
                    title={name}
                    about={about}
                    checked={form.NetworkID === id}
                    onChange={() => set({ NetworkID: id })}
                  />
                ))}
              </fieldset>
              <Unread of={networks.reads} />
            </Panel>
            <Panel
              title={t.create.keys}
              actions={
                <Button size="small" kind="quiet" onClick={() => setAdding(true)}>
                  {t.access.addKey}
                </Button>
              }
            >
              <Unread of={[keys]} />
              {shownKeys.length > 0 ? (
                <div className="stack tight">
                  {shownKeys.map(({ ID, Title, Fingerprint }) => (
                    <Check
                      key={ID}
                      label={Title}
                      hint={Fingerprint === "" ? undefined : <code>{Fingerprint}</code>}
                      checked={SshKeys.includes(ID)}
                      onChange={(event) => {
                        const others = SshKeys.filter((key) => key !== ID);
                        set({ SshKeys: event.target.checked ? [...others, ID] : others });
                      }}
                    />
                  ))}
                </div>
              ) : (
                keys.isSuccess && <p className="muted">{t.create.noKeys}</p>
              )}
            </Panel>
            <Panel
              title={t.create.userData}
              actions={
                <Button size="small" kind="quiet" onClick={() => set({ UserData: template })}>
                  {t.create.template}
                </Button>
              }
            >
              <AreaField
                label={t.create.userData}
                hint={t.create.userDataHint}
                error={errors.at("/UserData")}
                value={form.UserData ?? ""}
                onChange={(event) => set({ UserData: event.target.value })}
              />
            </Panel>
            <OtherFields operation="createServer" placed={placed} value={form} error={errors.at} onChange={set} />
          </div>
          <aside className="stack">
            <Unplaced error={error} errors={errors} />
            <RequestPanel
              isBeside={isWide}
              request={
                isGroup
                  ? { operation: "createBatch", body: { ...group, Name: shownName } }
                  : { operation: "createServer", body: { ...body, Name: shownName } }
              }
            />
            <Button type="submit" kind="primary" isBusy={create.isBusy} disabled={body.Name === ""}>
              {t.create.action}
            </Button>
            <p className="muted small" role="status">
              {body.Name === "" ? "" : check.isChecking ? t.create.checking : error === null ? t.create.valid : ""}
            </p>
          </aside>
        </div>
      </form>
      {isAdding && <AddKey onAdded={({ ID }) => set({ SshKeys: [...SshKeys, ID] })} onClose={() => setAdding(false)} />}
    </>
  );
}

const sizeOf = ({ CPU, RAM, HDD }: (typeof sizes)[number]) => ({ CPU, RAM, HDD });

/** Leaves out what was not filled in. */
function withoutEmpty(form: Partial<CreateServerInput>): CreateServerInput {
  const kept = Object.entries(form).filter(([name, value]) => {
    if (name === "Name") return true;
    return !(value === undefined || value === "" || (Array.isArray(value) && value.length === 0));
  });
  return { Name: "", ...Object.fromEntries(kept) };
}
