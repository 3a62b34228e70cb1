/**
 * Makes the font files of the console: a plugin of esbuild for `console/src/ui/fonts.css`. Each file contains only the characters, weights and
 * features that the style sheet uses, which is a third of the bytes of the original.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Plugin } from "esbuild";
import subsetFont from "subset-font";

/** Kerning, accents, and figures of equal width. The mono font shows no ligatures. */
const features = ["kern", "mark", "mkmk", "ccmp", "locl", "tnum"];

const rule = /@font-face\s*\{[^}]*\}/g;

/** Returns the value of a descriptor of a rule. Throws if it is absent. */
function read(face: string, pattern: RegExp): string {
  const value = pattern.exec(face)?.[1];
  if (value === undefined) throw new Error(`a font has no ${pattern.source}: ${face}`);
  return value;
}

const urlOf = (face: string): string => read(face, /url\("([^"]+)"\)/);

/** Returns the characters of a `unicode-range`: `U+0020-007E, U+00A0`. */
function charactersOf(range: string): string {
  const points = range.split(",").flatMap((part) => {
    const [first = 0, last = first] = part
      .trim()
      .replace("U+", "")
      .split("-")
      .map((hex) => Number.parseInt(hex, 16));
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  return String.fromCodePoint(...points);
}

/** Returns the file of a font for one rule of the style sheet. Its hints stay: without them, Linux fits its characters to whole pixels. */
async function makeFont(path: string, face: string): Promise<Uint8Array> {
  const [min = 400, max = min] = read(face, /font-weight:\s*([\d ]+);/)
    .split(" ")
    .map(Number);
  return subsetFont(readFileSync(path), charactersOf(read(face, /unicode-range:\s*([^;]+);/)), {
    targetFormat: "woff2",
    variationAxes: { wght: { min, max } },
    keepFeatures: features,
  });
}

/** Returns a plugin that replaces the fonts of the style sheet by those that are made for it, each once. */
export function createFonts(): Plugin {
  const made = new Map<string, Promise<Uint8Array>>();
  return {
    name: "fonts",
    setup({ onLoad, onResolve }) {
      const faces: string[] = [];
      onLoad({ filter: /console\/src\/ui\/fonts\.css$/ }, ({ path }) => {
        const contents = readFileSync(path, "utf8").replaceAll(rule, (face) =>
          face.replace(urlOf(face), `font:${faces.push(face) - 1}`),
        );
        return { contents, loader: "css" };
      });
      onResolve({ filter: /^font:/ }, ({ path, importer }) => {
        const face = faces[Number(path.slice("font:".length))] ?? "";
        const file = createRequire(importer).resolve(urlOf(face));
        return { path: file, namespace: path, pluginData: face };
      });
      onLoad({ filter: /\.woff2$/ }, async ({ path, pluginData }) => {
        const face = pluginData as string;
        const font = made.get(face) ?? makeFont(path, face);
        made.set(face, font);
        return { contents: await font, loader: "file" };
      });
    },
  };
}
