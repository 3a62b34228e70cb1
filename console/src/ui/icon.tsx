/** Icons: strokes on a grid of 16, drawn for the console. */

const paths = {
  overview: "M2.5 2.5h4.5v6H2.5zM9 2.5h4.5V6H9zM9 8.5h4.5v5H9zM2.5 11h4.5v2.5H2.5z",
  server: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01M8 5h3M8 11h3",
  network: "M6 2h4v3.500H6zM2 10.500h4V14H2zM10 10.500h4V14h-4zM8 5.500V8M4 10.500V8h8v2.500",
  dns: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2.2 8h11.6M8 2c2 1.8 2.6 4 2.6 6S10 12.200 8 14C6 12.200 5.400 10 5.400 8S6 3.800 8 2z",
  activity: "M1.500 8.500h3l2-5 3 9 2-4h3",
  access:
    "M10.500 9a3.500 3.500 0 1 0-3.300-2.300L2.500 11.500v2h2.500v-1.500h1.500v-1.500H8l.7-.8c.6.2 1.200.3 1.800.3zM11 5h.01",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.700 10.700 14 14",
  plus: "M8 3v10M3 8h10",
  close: "m4 4 8 8M12 4l-8 8",
  check: "m3 8.500 3.500 3.500L13 4.500",
  more: "M8 3.500h.01M8 8h.01M8 12.500h.01",
  down: "m4.500 6.500 3.500 3.500 3.500-3.500",
  left: "M9.500 4.500 6 8l3.500 3.500",
  warn: "M8 2 1.500 13.500h13zM8 6.500v3M8 11.500h.01",
  error: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.500M8 11h.01",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.500V11M8 5h.01",
  busy: "M8 2a6 6 0 1 0 6 6",
  off: "M8 13.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11z",
  on: "M8 13.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11zM6.500 5.500v5l4-2.500z",
  blocked: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM3.800 3.800l8.400 8.400",
  copy: "M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1",
  refresh: "M13.500 8a5.500 5.500 0 1 1-1.600-3.900M13.500 2.500V5H11",
  power: "M8 2v6M4.800 4.200a5 5 0 1 0 6.400 0",
  trash: "M2.500 4h11M6 4V2.500h4V4M4 4l.7 9.500h6.600L12 4M6.700 6.500v4.500M9.300 6.500v4.500",
  edit: "m10.500 3 2.500 2.500-7.500 7.500H3v-2.500z",
  undo: "M5.500 3 2.500 6l3 3M3 6h6.500a4 4 0 0 1 0 8H7",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500v1M8 13.500v1M1.500 8h1M13.500 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.600l.7-.7M11.900 4.100l.7-.7",
  moon: "M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7z",
  user: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.500 14c.5-3 2.800-4.500 5.500-4.500s5 1.500 5.500 4.500",
  terminal: "M2 3h12v10H2zM4.500 6l2 2-2 2M8.500 10.500h3",
  play: "M4.500 3v10l8-5z",
  pause: "M5 3.500v9M11 3.500v9",
  wait: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.500V8l2.500 1.500",
  file: "M3.500 1.500h6l3 3v10h-9zM9.500 1.500v3h3",
  shield: "M8 1.500 13.500 3.500v4.200c0 3.200-2.300 5.700-5.500 6.800-3.200-1.100-5.500-3.600-5.500-6.800V3.500z",
  unlink:
    "M7 4.500l1.300-1.300a3 3 0 0 1 4.500 4.300L11.500 9M9 11.500l-1.300 1.300a3 3 0 0 1-4.500-4.300L4.500 7M3 3l10 10",
  link: "M6.500 9.500l3-3M7 4.500l1.300-1.300a3 3 0 0 1 4.500 4.300L11.500 9M9 11.500l-1.300 1.300a3 3 0 0 1-4.500-4.300L4.500 7",
  image: "M8 1.500 14 4.700 8 8 2 4.700zM2 8l6 3.300L14 8M2 11.300l6 3.200 6-3.200",
  host: "M3.500 2h9v12h-9zM6 4.500h4M6 7h4M8 11.500h.01",
  webhook:
    "M5.500 11.500H11M8.300 4.700 5.600 9.300M7.700 4.700l2.700 4.700M8 5a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4 13a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM12.500 13a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
  download: "M8 2v8M4.500 7 8 10.500 11.500 7M2.500 13.500h11",
  lock: "M3.500 7h9v6.500h-9zM5.500 7V5a2.500 2.500 0 0 1 5 0v2",
  globe: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2.200 8h11.600",
} as const;

/** Name of an icon. */
export type IconName = keyof typeof paths;

/** An icon, which a screen reader skips: the text beside it has the same meaning. */
export function Icon({ name, size = 16, spins = false }: { name: IconName; size?: number; spins?: boolean }) {
  return (
    <svg
      className={spins ? "icon spin" : "icon"}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
