/** The search of the pages at `/docs`. Texts and the library are loaded when the reader uses the field for the first time. */
import type MiniSearch from "minisearch";

interface Entry {
  readonly u: string;
  readonly t: string;
  readonly p: string;
  readonly x: string;
}

async function loadIndex(): Promise<MiniSearch<Entry & { id: number }>> {
  const [{ default: Search }, entries] = await Promise.all([
    import("minisearch"),
    fetch("/docs/search.json").then((response) => response.json() as Promise<Entry[]>),
  ]);
  const index = new Search<Entry & { id: number }>({
    fields: ["t", "p", "x"],
    storeFields: ["u", "t", "p", "x"],
    searchOptions: { boost: { t: 4, p: 2 }, prefix: true, fuzzy: 0.15, combineWith: "AND" },
  });
  index.addAll(entries.map((entry, id) => ({ ...entry, id })));
  return index;
}

/** Returns the text around the first searched word. */
function excerpt(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const at = Math.max(0, Math.min(...words.map((word) => lower.indexOf(word)).filter((place) => place >= 0)));
  const start = Number.isFinite(at) && at > 60 ? text.indexOf(" ", at - 40) + 1 : 0;
  return `${start > 0 ? "… " : ""}${text.slice(start, start + 140)}`;
}

/** Starts the search in the field of the header. */
export function startSearch(box: HTMLElement): void {
  const input = box.querySelector("input");
  const list = box.querySelector("ul");
  if (input === null || list === null) return;
  box.hidden = false;
  let index: ReturnType<typeof loadIndex> | null = null;
  let selected = -1;

  const options = () => [...list.querySelectorAll<HTMLElement>("[role=option]")];
  const select = (next: number) => {
    const all = options();
    selected = all.length === 0 ? -1 : (next + all.length) % all.length;
    for (const [at, option] of all.entries()) option.setAttribute("aria-selected", String(at === selected));
    const current = all[selected];
    if (current === undefined) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", current.id);
    current?.scrollIntoView({ block: "nearest" });
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };
  const open = () => {
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  };

  async function search(): Promise<void> {
    if (input === null || list === null) return;
    const text = input.value.trim();
    index ??= loadIndex();
    const loaded = await index;
    // The reader has typed more in the meantime.
    if (text !== input.value.trim()) return;
    if (text === "") return close();
    const found = loaded.search(text).slice(0, 12);
    const items = found.map(({ u, t, p, x, terms }, at) => {
      const item = document.createElement("li");
      item.role = "option";
      item.id = `found-${at}`;
      const link = document.createElement("a");
      link.href = String(u);
      link.tabIndex = -1;
      const title = document.createElement("b");
      title.textContent = String(t);
      const page = document.createElement("small");
      page.textContent = String(p);
      const part = document.createElement("span");
      part.textContent = excerpt(String(x), terms);
      link.append(title, " ", page, part);
      item.append(link);
      return item;
    });
    if (items.length === 0) {
      const item = document.createElement("li");
      item.textContent = "Nothing found.";
      items.push(item);
    }
    list.replaceChildren(...items);
    open();
    select(0);
  }

  input.addEventListener("focus", () => {
    index ??= loadIndex();
    if (input.value !== "") void search();
  });
  input.addEventListener("input", () => void search());
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") select(selected + 1);
    else if (event.key === "ArrowUp") select(selected - 1);
    else if (event.key === "Enter") options()[selected]?.querySelector("a")?.click();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", close);
  addEventListener("click", ({ target }) => {
    if (target instanceof Node && !box.contains(target)) close();
  });
  addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    if ((event.key === "/" && !isTyping) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      input.focus();
    }
  });
}
