/** Nodes with edges between them, at given places. The edges of the node that has the pointer or the focus are highlighted. */
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface GraphNode {
  readonly id: string;
  readonly look: string;
  readonly content: ReactNode;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** 0 (thin and still) to 4. */
  readonly strength: number;
  readonly look: string;
  /** Shown at the end of the line if there is space. */
  readonly label?: string | undefined;
}

interface GraphProps {
  readonly label: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** Returns the places for a width in pixels. */
  readonly layOut: (width: number) => { readonly height: number; readonly boxes: ReadonlyMap<string, Box> };
}

/** Pixels between columns from which labels have space. */
const labelSpace = 150;

export function Graph({ label, nodes, edges, layOut }: GraphProps) {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [active, setActive] = useState<string | null>(null);
  useLayoutEffect(() => {
    const box = ref.current;
    if (box === null) return undefined;
    const measure = (): void => setWidth(box.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const { height, boxes } = layOut(width);
  const lines = edges.flatMap((edge) => {
    const from = boxes.get(edge.from);
    const to = boxes.get(edge.to);
    if (from === undefined || to === undefined) return [];
    const start = { x: from.x + from.width, y: from.y + from.height / 2 };
    const end = { x: to.x, y: to.y + to.height / 2 };
    const bend = (end.x - start.x) / 2;
    const path = `M${start.x} ${start.y}C${start.x + bend} ${start.y} ${end.x - bend} ${end.y} ${end.x} ${end.y}`;
    return [{ ...edge, key: `${edge.from} ${edge.to}`, path, end, space: end.x - start.x }];
  });
  return (
    <div className="graph" ref={ref} role="group" aria-label={label} style={{ height: `${height}px` }}>
      <svg width={width} height={height} aria-hidden="true">
        {lines.map(({ key, from, to, path, strength, look }) => (
          <path
            key={key}
            d={path}
            className={`edge flow-${strength} ${look} ${active !== null && (from === active || to === active) ? "active" : ""}`}
          />
        ))}
      </svg>
      {lines.map(({ key, label: text, end, space }) =>
        text === undefined || space < labelSpace ? null : (
          <span
            key={key}
            className="edge-label"
            aria-hidden="true"
            style={{ left: `${end.x - 8}px`, top: `${end.y}px` }}
          >
            {text}
          </span>
        ),
      )}
      {nodes.map(({ id, look, content }) => {
        const box = boxes.get(id);
        if (box === undefined) return null;
        const { x, y } = box;
        return (
          <div
            key={id}
            className={`node ${look}`}
            style={{ left: `${x}px`, top: `${y}px`, width: `${box.width}px`, height: `${box.height}px` }}
            onPointerEnter={() => setActive(id)}
            onPointerLeave={() => setActive(null)}
            onFocus={() => setActive(id)}
            onBlur={() => setActive(null)}
          >
            {content}
          </div>
        );
      })}
    </div>
  );
}
