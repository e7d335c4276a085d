import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";

import type { Point } from "../history";
import { nameOf } from "../history";

export interface Series {
  name: string;
  colour: string;
  value: (point: Point) => number;
}

interface Props {
  title: string;
  points: Point[];
  series: Series[];
  format: (value: number) => string;
  axis?: (value: number) => string;
  /** whether the values are counts */
  whole?: boolean;
}

/** Stacked bars, one for each run. The table of the runs has the same figures. */
export function Chart({ title, points, series, format, axis = format, whole = false }: Props) {
  const labels = new Map(points.map((point) => [point.key, point.label]));
  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{title}</span>
        <ul className="legend">
          {series.map(({ name, colour }) => (
            <li key={name}>
              <span className="swatch" style={{ background: colour }} />
              {name}
            </li>
          ))}
        </ul>
      </figcaption>
      <ResponsiveContainer width="100%" height={200}>
        <BarChart
          data={points}
          margin={{ top: 8, right: 4, bottom: 0, left: 0 }}
          barCategoryGap="12%"
          title={`${title}. The table of runs has the same figures.`}
        >
          <CartesianGrid vertical={false} stroke="var(--border)" />
          <XAxis
            dataKey="key"
            tickFormatter={(key: string) => labels.get(key) ?? ""}
            tickLine={false}
            stroke="var(--fg-muted)"
            minTickGap={24}
            fontSize={12}
          />
          <YAxis
            tickFormatter={axis}
            allowDecimals={!whole}
            tickLine={false}
            axisLine={false}
            stroke="var(--fg-muted)"
            width={64}
            fontSize={12}
          />
          <Tooltip
            cursor={{ fill: "var(--bg-hover)" }}
            isAnimationActive={false}
            content={({ active, payload }) => {
              const point = (payload[0] as { payload?: Point } | undefined)?.payload;
              if (!active || point === undefined) return null;
              return <Card point={point} series={series} format={format} />;
            }}
          />
          {series.map(({ name, colour, value }) => (
            <Bar
              key={name}
              name={name}
              dataKey={value}
              stackId="all"
              fill={colour}
              maxBarSize={48}
              isAnimationActive={false}
            />
          ))}
        </BarChart>
      </ResponsiveContainer>
    </figure>
  );
}

function Card({ point, series, format }: { point: Point } & Pick<Props, "series" | "format">) {
  const shown = series.filter(({ value }) => value(point) > 0);
  return (
    <div className="tooltip">
      <div className="tooltip-title">{nameOf(point.run)}</div>
      <div className="muted">{point.label}</div>
      {shown.map(({ name, colour, value }) => (
        <div key={name}>
          <span className="swatch" style={{ background: colour }} />
          {name}: {format(value(point))}
        </div>
      ))}
      {point.whole > 0 && <div>{point.run.reason}</div>}
    </div>
  );
}
