/** The selected language: its texts, and formats of numbers, sizes and times. Only English is part of the first load. */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { detailOf, type Language, selectDetails } from "./detail.ts";
import { en, type Texts } from "./en.ts";
import { createFormat, type Format, localeOf } from "./format.ts";
import { isolated } from "./isolate.ts";

interface Speech {
  readonly language: Language;
  readonly setLanguage: (language: Language) => void;
  readonly texts: Texts;
  readonly format: Format;
}

const storedName = "brume-language";

function firstLanguage(): Language {
  const stored = localStorage.getItem(storedName);
  if (stored === "en" || stored === "ru") return stored;
  return navigator.language.startsWith("ru") ? "ru" : "en";
}

const SpeechContext = createContext<Speech>({
  language: "en",
  setLanguage: () => {},
  texts: en,
  format: createFormat("en"),
});

export function SpeechProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(firstLanguage);
  const [shown, setShown] = useState<{ readonly language: Language; readonly texts: Texts }>();
  useEffect(() => {
    localStorage.setItem(storedName, language);
    let isLeft = false;
    const show = (texts: Texts): void => {
      if (isLeft) return;
      document.documentElement.lang = language;
      // A detail is a sentence and no name within one. The function is a new one when its table is loaded, so that all pages use it.
      const showWithDetails = (): void => {
        const errors = { ...isolated(texts.errors), detail: (text: string) => detailOf(text) };
        setShown({ language, texts: Object.defineProperty(isolated(texts), "errors", { value: errors }) });
      };
      selectDetails(language, showWithDetails);
      showWithDetails();
    };
    if (language === "ru")
      import("./ru.ts").then(
        ({ ru }) => show(ru),
        () => show(en),
      );
    else show(en);
    return () => {
      isLeft = true;
    };
  }, [language]);
  const value = useMemo<Speech | null>(
    () => (shown ? { ...shown, setLanguage, format: createFormat(localeOf(shown.language)) } : null),
    [shown],
  );
  return value === null ? null : <SpeechContext value={value}>{children}</SpeechContext>;
}

export const useTexts = (): Texts => useContext(SpeechContext).texts;
export const useFormat = (): Format => useContext(SpeechContext).format;
export const useLanguage = () => useContext(SpeechContext);
