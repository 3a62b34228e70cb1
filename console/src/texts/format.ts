/** Numbers, sizes, dates and durations as the language writes them. */

export interface Format {
  /** Language and region, for what `Intl` writes. */
  readonly locale: string;
  number(value: number): string;
  /** `12K`, `3.4M`. */
  compact(value: number): string;
  /** Bytes (powers of 1000): `1.2 MB`. */
  bytes(value: number): string;
  /** `1.2 MB/s`. */
  bytesPerSecond(value: number): string;
  /** Hundredths: `12%`. */
  percent(value: number): string;
  /** Bytes per second as bits per second: `3.4 Mbit/s`. */
  rate(bytesPerSecond: number): string;
  /** Seconds as `1:05`. */
  duration(seconds: number): string;
  /** `100 Mbit/s` */
  megabits(value: number): string;
  /** Megabytes (2^20) as MB, GB or TB. */
  megabytes(value: number): string;
  /** `5 minutes ago`. */
  ago(date: string, now?: number): string;
  /** Date and time. */
  time(date: string): string;
  date(date: string): string;
  /** Date and time with seconds. */
  exact(date: string): string;
  /** Day, month and time with seconds, without the year. */
  moment(date: string): string;
  /** Time of day with seconds. */
  clock(date: string): string;
  seconds(from: string, to: string | null): string;
}

const units = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Infinity],
] as const;

/** Returns the way in which the user writes the language: `en-GB` of English, if the browser prefers it. */
export const localeOf = (language: string): string =>
  navigator.languages.find((each) => each === language || each.startsWith(`${language}-`)) ?? language;

/** Returns a function that makes a value at its first call. A formatter takes milliseconds to make on a phone, and a page needs few of them. */
function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** `locale`: a language, with or without a region. */
export function createFormat(locale: string): Format {
  const numbers = lazy(() => new Intl.NumberFormat(locale));
  // Both languages write such a number as JavaScript does, which needs no formatter.
  const number = (value: number): string =>
    Number.isInteger(value) && Math.abs(value) < 1000 ? String(value) : numbers().format(value);
  const relative = lazy(() => new Intl.RelativeTimeFormat(locale, { numeric: "auto" }));
  const times = lazy(() => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }));
  const exacts = lazy(() => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" }));
  const dates = lazy(() => new Intl.DateTimeFormat(locale, { dateStyle: "medium" }));
  const moments = lazy(
    () =>
      new Intl.DateTimeFormat(locale, {
        day: "numeric",
        month: "short",
        hour: "2-digit",
        minute: "2-digit",
        second: "2-digit",
      }),
  );
  const clocks = lazy(() => new Intl.DateTimeFormat(locale, { timeStyle: "medium" }));
  // Most regions of English write a million as "1m", which is read as a thousandth or a metre.
  const compact = lazy(
    () =>
      new Intl.NumberFormat(locale.startsWith("en") ? "en-US" : locale, {
        notation: "compact",
        maximumFractionDigits: 1,
      }),
  );
  const percents = lazy(() => new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 }));
  const short = lazy(() => new Intl.NumberFormat(locale, { maximumFractionDigits: 1 }));
  /**
   * Returns a function that writes a value with the greatest of the units that it reaches, each `base` times the one before. The units of
   * `Intl` are ambiguous: "Mb" for megabits. No line ends between figure and unit.
   */
  const scaled = (base: number, units: string) => (value: number) => {
    const names = units.split(" ");
    const step = Math.max(
      0,
      names.findLastIndex((_, each) => value >= base ** each),
    );
    return `${short().format(value / base ** step)}\u00a0${names[step] ?? ""}`;
  };
  const isRussian = locale.startsWith("ru");
  const bytes = scaled(1000, isRussian ? "Б кБ МБ ГБ ТБ" : "B kB MB GB TB");
  const bits = scaled(1000, isRussian ? "бит/с кбит/с Мбит/с Гбит/с" : "bit/s kbit/s Mbit/s Gbit/s");
  return {
    locale,
    number,
    compact: (value) => compact().format(value),
    bytes,
    bytesPerSecond: (value) => `${bytes(value)}/${isRussian ? "с" : "s"}`,
    percent: (value) => percents().format(value / 100),
    rate: (value) => bits(value * 8),
    megabits: (value) => `${number(value)}\u00a0${isRussian ? "Мбит/с" : "Mbit/s"}`,
    duration: (value) => `${Math.floor(value / 60)}:${String(Math.floor(value % 60)).padStart(2, "0")}`,
    megabytes: scaled(1024, isRussian ? "МБ ГБ ТБ" : "MB GB TB"),
    ago(date, now = Date.now()) {
      let value = (Date.parse(date) - now) / 1000;
      if (Math.abs(value) < 10) return relative().format(0, "second");
      for (const [unit, size] of units) {
        if (Math.abs(value) < size) return relative().format(value < 0 ? Math.trunc(value) : Math.round(value), unit);
        value /= size;
      }
      return date;
    },
    time: (date) => times().format(new Date(date)),
    exact: (date) => exacts().format(new Date(date)),
    date: (date) => dates().format(new Date(date)),
    moment: (date) => moments().format(new Date(date)),
    clock: (date) => clocks().format(new Date(date)),
    seconds: (from, to) =>
      `${short().format(((to === null ? Date.now() : Date.parse(to)) - Date.parse(from)) / 1000)}\u00a0${isRussian ? "с" : "s"}`,
  };
}
