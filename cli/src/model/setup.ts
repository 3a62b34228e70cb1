/** The texts that `brume init` writes: the settings file and the systemd unit. */

/** Settings by key of the file. An empty text leaves the default. */
export type SettingTexts = Readonly<Record<string, string>>;

/** Returns a text as a TOML string (toml.io, "basic strings"). */
const quote = (text: string): string =>
  `"${text.replaceAll(/["\\\p{Cc}]/gu, (one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`)}"`;

/** Returns the settings file. `comments`: what each key means. */
export function settingsFile(settings: SettingTexts, comments: Readonly<Record<string, string>>): string {
  const lines = Object.entries(settings)
    .filter(([, text]) => text !== "")
    .flatMap(([key, text]) => [`# ${comments[key] ?? key}`, `${key} = ${quote(text)}`, ""]);
  return [
    "# Settings of Brume. brume config check validates this file, and brume config show lists all settings.",
    "",
    ...lines,
  ].join("\n");
}

/** What a unit needs to know; paths are absolute. */
export interface UnitOptions {
  /** Folder of the installation, program of Node, and path of the settings file. */
  readonly installation: string;
  readonly node: string;
  readonly settings: string;
  /** Data folder. */
  readonly data: string;
}

/** Returns a path as a word of a unit (systemd.syntax(7)): `%` begins a specifier, blanks end a word. */
const word = (text: string): string => {
  const escaped = text.replaceAll("%", "%%").replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return /[\s"'\\;]/.test(text) ? `"${escaped}"` : escaped;
};

/** Returns the name of a folder directly in /var/lib, which systemd creates for the user of the unit; null: another folder. */
const stateName = (data: string): string | null => /^\/var\/lib\/([\w.-]+)\/?$/.exec(data)?.[1] ?? null;

/**
 * Returns a unit of the Debian package for this installation: the same rights and options, with other paths. A unit with a user reads the
 * settings as a credential, since the file belongs to root.
 */
export function unitFile(template: string, { installation, node, settings, data }: UnitOptions): string {
  const hasUser = /^User=/m.test(template);
  const state = stateName(data);
  const isAtHome = [installation, node].some((path) => /^\/(home|root|run\/user)\//.test(`${path}/`));
  const replaced: readonly (readonly [RegExp, readonly string[]])[] = [
    [/^ExecStart=/, [`ExecStart=${word(node)} ${word(`${installation}/service/dist/main.js`)}`]],
    [/^Environment=BRUME_DATA=/, []],
    [
      /^StateDirectory=/,
      state === null ? [`ReadWritePaths=${word(data)}`].filter(() => hasUser) : [`StateDirectory=${state}`],
    ],
    [/^StateDirectoryMode=/, state === null ? [] : ["StateDirectoryMode=0700"]],
    [/^ProtectHome=yes/, [isAtHome ? "ProtectHome=read-only" : "ProtectHome=yes"]],
    [
      /^Type=exec/,
      [
        "Type=exec",
        ...(hasUser
          ? [`LoadCredential=brume.toml:${word(settings)}`, "Environment=BRUME_CONFIG=%d/brume.toml"]
          : [`Environment=${word(`BRUME_CONFIG=${settings}`)}`]),
      ],
    ],
  ];
  const lines = template.split("\n").flatMap((line) => {
    const found = replaced.find(([pattern]) => pattern.test(line));
    return found === undefined ? [line] : found[1];
  });
  return lines.join("\n");
}
