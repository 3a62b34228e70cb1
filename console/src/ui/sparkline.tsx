/** A line of values without axes, as high as a row of a table. */

interface SparklineProps {
  /** What the line shows, with its last value. */
  readonly label: string;
  /** From the oldest to the newest. */
  readonly values: readonly number[];
}

const width = 100;
const height = 24;

export function Sparkline({ label, values }: SparklineProps) {
  const most = Math.max(...values, 0);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, index) => {
    const y = most === 0 ? height - 1 : height - 1 - (value / most) * (height - 2);
    return `${(index * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polyline points={points.join(" ")} />
    </svg>
  );
}
