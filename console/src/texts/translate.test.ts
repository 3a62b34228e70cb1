/** Translation by templates: which template is selected, what is inserted, and that no text takes long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { details } from "./ru/details.ts";
import { createTranslator } from "./translate.ts";

const translate = createTranslator({
  sentences: [
    ["Server {1} is {a}.", "Сервер {1}: {a}."],
    ["Server {1} is {2}.", "Сервер {1} — {2}."],
    ["Network {1} is in {2}, server {3} in {4}.", "{4}, {3}: {2}, {1}."],
    ["{1} {a}, not {b?}.", "{1}: {a}; получено: {b?}."],
    ["{1} {a}.", "{1}: {a}."],
    ["Repeat it.", "Повторите."],
    ["line {1}: {A}", "строка {1}: {A}"],
    ["Could not stop {1}: {a?}", "Не удалось остановить {1}: {a?}"],
  ],
  phrases: [
    ["off", "выключен"],
    ["must be text", "нужен текст"],
    ["must be a name, not {1}", "нужно имя, а не {1}"],
    ["a list", "список"],
    ["{a} before {b}", "{a} перед {b}"],
  ],
});
const textOf = (text: string): string | null => translate(text)?.text ?? null;

test("values are inserted as they came, phrases are translated", () => {
  assert.equal(textOf("Server 5 is off."), "Сервер 5: выключен.");
  assert.equal(textOf("Server off is lost."), "Сервер off — lost.");
  assert.equal(textOf("Network 1 is in a, server 2 in b."), "b, 2: a, 1.");
  assert.equal(textOf("Server {2} is {1}$&."), "Сервер {2} — {1}$&.");
  assert.equal(textOf("Name must be text, not a list."), "Name: нужен текст; получено: список.");
  assert.equal(textOf('Name must be text, not "a list".'), 'Name: нужен текст; получено: "a list".');
  assert.equal(textOf("line 2: Server 5 is off."), "строка 2: Сервер 5: выключен.");
  assert.equal(textOf("line 2: nothing"), null);
  assert.equal(textOf("Could not stop 5: off"), "Не удалось остановить 5: выключен");
  assert.equal(textOf("Could not stop 5: Server 5 is off"), "Не удалось остановить 5: Сервер 5: выключен");
  assert.equal(textOf("Could not stop 5: Server 5 is off."), "Не удалось остановить 5: Сервер 5: выключен.");
  assert.equal(textOf("Could not stop 5: it burns"), "Не удалось остановить 5: it burns");
  assert.equal(textOf("Name off before off."), "Name: выключен перед выключен.");
});

test("the template with the most text is selected, whatever the order", () => {
  assert.equal(textOf("Name must be a name, not a list."), "Name: нужно имя, а не a list.");
});

test("a text without a template is not translated", () => {
  for (const text of ["", "Server", "server 5 is off.", "Server 5 is off", "Name must be odd.", "Repeat it. Or not."])
    assert.equal(textOf(text), null, text);
});

test("several sentences are translated if each is known", () => {
  assert.equal(textOf("Name must be text. Repeat it."), "Name: нужен текст. Повторите.");
  assert.equal(textOf("Name must be text. Repeat it. Never."), null);
});

test("a name of the other direction does not turn the words after it", () => {
  assert.equal(textOf("Server \u05d0\u202e is off."), "Сервер \u2068\u05d0\u2069: выключен.");
});

test("the number of searches does not grow with the length of a hostile text", () => {
  let searches = 0;
  // All other work is one comparison at each end of the text.
  const counting = createTranslator(details, (text, part, from) => {
    searches++;
    return text.indexOf(part, from);
  });
  const searchesIn = (text: string): number => {
    searches = 0;
    for (const whole of [text, `Name ${text}.`, `Server ${text}.`]) counting(whole);
    return searches;
  };
  const all = [...details.sentences, ...details.phrases].map(([template]) => template.split(/\{\w\??\}/));
  // Only the texts between gaps are searched for.
  for (const part of new Set(["a", " ", "{1}", ...all.flatMap((texts) => texts.slice(1, -1))])) {
    const short = searchesIn(part.repeat(100));
    assert.equal(searchesIn(part.repeat(1000)), short, part);
    assert.ok(short < 20 * all.length, part);
  }
});
