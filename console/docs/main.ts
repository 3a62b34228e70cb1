/**
 * The script of the pages at `/docs`: menu on a phone, the current section in the menu, search, copy buttons, and forms that send a request
 * with the token of the reader. Pages work without it, except search and forms.
 */
import { sessionHeader } from "../../api/src/session.ts";
import "./style.css";
import { startSearch } from "./search.ts";

/** Returns the only element for a selector; throws if the page has none. */
function find<E extends Element>(selector: string, kind: new () => E): E {
  const found = document.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`the page has no ${selector}`);
  return found;
}

function startMenu(): void {
  const button = find("header button.menu", HTMLButtonElement);
  const menu = find("#menu", HTMLElement);
  const show = (isOpen: boolean) => {
    document.documentElement.toggleAttribute("data-menu", isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.hidden = false;
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") !== "true"));
  menu.addEventListener("click", ({ target }) => {
    if (target instanceof HTMLAnchorElement) show(false);
  });
  addEventListener("keydown", ({ key }) => {
    if (key === "Escape") show(false);
  });
}

/** Scrolls the menu, and not the page, so that the link is visible. */
function showInMenu(link: HTMLElement): void {
  const menu = find("#menu", HTMLElement);
  const box = menu.getBoundingClientRect();
  const { top, bottom } = link.getBoundingClientRect();
  if (top < box.top || bottom > box.bottom) menu.scrollTop += top - box.top - box.height / 3;
}

/** Marks the section of the page that is at the top of the screen. */
function startSections(): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("#menu .sections a")];
  if (links.length === 0) return;
  const sections = links.flatMap((link) => {
    const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return target === null ? [] : [{ link, target }];
  });
  let current: HTMLAnchorElement | null = null;
  const mark = () => {
    // The last heading above the upper third of the screen; at the end of the page the last one.
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const passed = sections.filter(({ target }) => target.getBoundingClientRect().top < innerHeight / 3);
    const link = (isAtEnd ? sections.at(-1) : passed.at(-1))?.link ?? null;
    if (link === current) return;
    current?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "location");
    if (link !== null) showInMenu(link);
    current = link;
  };
  let waits = false;
  addEventListener(
    "scroll",
    () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => {
        waits = false;
        mark();
      });
    },
    { passive: true },
  );
  mark();
}

async function copyFrom(block: HTMLElement, button: HTMLElement): Promise<void> {
  await navigator.clipboard.writeText(block.querySelector("code")?.textContent ?? "");
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, 1500);
}

function startCopying(): void {
  for (const block of document.querySelectorAll<HTMLPreElement>("main pre")) {
    if (block.closest("form") !== null || !isSecureContext) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", () => {
      void copyFrom(block, button);
    });
    block.append(button);
  }
}

/** The token is kept for this tab only. */
const tokenKey = "brume-docs-token";

function createTokenField(): HTMLInputElement {
  const field = document.createElement("input");
  field.type = "password";
  field.autocomplete = "off";
  field.id = "token";
  field.placeholder = "64 hexadecimal characters";
  field.value = sessionStorage.getItem(tokenKey) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(tokenKey, field.value.trim()));
  const label = document.createElement("label");
  label.htmlFor = field.id;
  label.textContent = "Your token";
  const note = document.createElement("small");
  note.textContent =
    "For the forms below. This tab keeps it until it is closed. Without a token, the session of the console is used.";
  const box = document.createElement("div");
  box.className = "token";
  box.append(label, field, note);
  document.querySelector("#operations")?.after(box);
  return field;
}

/** Reads a form: address with path and query, and the body. */
function readForm(form: HTMLFormElement): { readonly path: string; readonly body: string | null } {
  const query = new URLSearchParams();
  let { path = "" } = form.dataset;
  let body: string | null = null;
  for (const field of form.querySelectorAll<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>("[data-in]")) {
    const { in: place } = field.dataset;
    if (place === "body") body = field.value;
    else if (place === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (place === "dryRun") {
      if ((field as HTMLInputElement).checked) query.set("dryRun", "true");
    } else if (field.value !== "") query.append(field.name, field.value);
  }
  return { path: query.size > 0 ? `${path}?${query}` : path, body };
}

/** Returns a body for reading: indented if it is JSON. */
function format(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function sendForm(form: HTMLFormElement, token: string): Promise<void> {
  const { path, body } = readForm(form);
  const status = form.querySelector("output");
  const block = form.querySelector("pre");
  const button = form.querySelector("button");
  if (status === null || block === null || button === null) return;
  button.disabled = true;
  status.textContent = "…";
  const started = performance.now();
  try {
    const response = await fetch(path, {
      method: form.dataset["method"] ?? "GET",
      headers: {
        ...(token === "" ? { [sessionHeader]: "1" } : { Authorization: `Bearer ${token}` }),
        ...(body !== null && { "Content-Type": "application/json" }),
      },
      ...(body !== null && { body }),
      ...(token !== "" && { credentials: "omit" as const }),
    });
    const text = format(await response.text());
    status.textContent = `${response.status} in ${Math.round(performance.now() - started)} ms, ${response.headers.get("x-request-id") ?? ""}`;
    status.className = response.ok ? "good" : "bad";
    block.hidden = text === "";
    (block.querySelector("code") ?? block).textContent = text;
  } catch (error) {
    status.textContent = `The service does not respond: ${String(error)}`;
    status.className = "bad";
  } finally {
    button.disabled = false;
  }
}

function startForms(): void {
  const forms = [...document.querySelectorAll<HTMLFormElement>("details.try form")];
  if (forms.length === 0) return;
  const token = createTokenField();
  for (const form of forms) {
    // A stream does not end.
    if (form.dataset["stream"] !== undefined) continue;
    (form.closest("details") ?? form).hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void sendForm(form, token.value.trim());
    });
  }
}

/** The `type` of an error is `/docs#CODE`; the cause of the code is on the page of errors. */
function followCode(): void {
  const link = location.pathname === "/docs" ? document.getElementById(location.hash.slice(1)) : null;
  if (link instanceof HTMLAnchorElement) location.replace(link.href);
}

addEventListener("hashchange", followCode);
followCode();
startMenu();
startSections();
startCopying();
startForms();
startSearch(find("header search", HTMLElement));
