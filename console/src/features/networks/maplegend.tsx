/** What the icons and lines of the map of networks mean. The browser keeps whether it is hidden. */
import type { ReactNode } from "react";
import { useTexts } from "../../texts/texts.tsx";
import { useFold } from "../../ui/fold.ts";
import { Icon } from "../../ui/icon.tsx";
import { type Tone, toneIcons } from "../../ui/page.tsx";

const Mark = ({ tone }: { tone: Tone }) => (
  <span className={`tone ${tone}`}>
    <Icon name={toneIcons[tone]} size={14} />
  </span>
);

/** A piece of a line as the map draws it. */
const Line = ({ look }: { look: string }) => (
  <svg width={36} height={16} aria-hidden="true">
    <path className={`edge ${look}`} d="M0 8H36" />
  </svg>
);

/** `isList`: the map is shown as a list, which has no lines. */
export function MapLegend({ isList }: { isList: boolean }) {
  const t = useTexts();
  // A phone has little space before the list.
  const fold = useFold("brume-map-legend", !isList);
  const words = t.map.legend;
  const items: readonly (readonly [ReactNode, string])[] = [
    [<Icon name="network" />, words.network],
    [<Icon name="lock" />, words.private],
    [<Icon name="server" />, words.server],
    [<Icon name="tunnel" />, words.tunnel],
    [<Mark tone="good" />, words.up],
    [<Mark tone="bad" />, words.down],
    [<Mark tone="quiet" />, words.off],
    ...(isList
      ? []
      : ([
          [<Line look="" />, words.still],
          [<Line look="flow-2" />, words.traffic],
          [<Line look="secure" />, words.secure],
        ] as const)),
  ];
  return (
    <details className="panel legend" {...fold}>
      <summary>{words.title}</summary>
      <ul className="body">
        {items.map(([sample, text]) => (
          <li key={text}>
            {sample}
            {text}
          </li>
        ))}
      </ul>
    </details>
  );
}
