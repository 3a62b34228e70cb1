/**
 * Details of errors in the selected language. The service sends them in English, so a table translates them. It is loaded with the first
 * error that is shown, never with the page.
 */

export type Language = "en" | "ru";

type Translate = (detail: string) => { readonly text: string } | null;

const tables: Readonly<Record<Language, (() => Promise<Translate>) | null>> = {
  en: null,
  ru: () => import("./ru/details.ts").then(({ translateDetail }) => translateDetail),
};

let selected: Language = "en";
let translate: Translate | null = null;
let loading: Promise<void> | null = null;
let onLoaded: () => void = () => {};

/** Selects the language. `changed` is called when its table is loaded, because details are in English until then. */
export function selectDetails(language: Language, changed: () => void): void {
  if (language !== selected) translate = loading = null;
  selected = language;
  onLoaded = changed;
}

/** Loads the table of the selected language. Resolves also if that fails: then details stay in English until the next error. */
export function loadDetails(): Promise<void> {
  const language = selected;
  loading ??= (async () => {
    const found = await (tables[language]?.() ?? null);
    if (language !== selected || found === null) return;
    translate = found;
    onLoaded();
  })().catch(() => {
    loading = null;
  });
  return loading;
}

/** Returns the detail in the selected language; in English if its table is not loaded yet, or does not have the detail. */
export function detailOf(detail: string): string {
  if (detail === "" || tables[selected] === null) return detail;
  if (translate === null) void loadDetails();
  return translate?.(detail)?.text ?? detail;
}

/** Returns the detail without the name of the field in the API, with which it begins: it is shown at a label. */
export function withoutField(pointer: string, detail: string): string {
  const name = pointer.split("/").find((part) => detail.startsWith(`${part} `) || detail.startsWith(`${part}: `));
  return name === undefined ? detail : detail.slice(name.length).replace(/^:? /, "");
}
