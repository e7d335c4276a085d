import { useId, useMemo, useState } from "react";

import type { Run } from "../api/types";
import { axisBytes, axisSeconds, bytes, count, seconds } from "../format";
import { nearlyAllIsPruned, phasesOf, points } from "../history";
import { Chart, type Series } from "./Chart";
import { phaseColour } from "./Phases";

const KEPT: Series = { name: "kept", colour: "var(--kept)", value: (point) => point.kept };
const WHOLE: Series = {
  name: "nothing pruned",
  colour: "var(--whole)",
  value: (point) => point.whole,
};
const PRUNED: Series = { name: "pruned", colour: "var(--pruned)", value: (point) => point.pruned };
const BYTES: Series[] = [
  { name: "read", colour: "var(--kept)", value: (point) => point.read },
  { name: "pruned", colour: "var(--pruned)", value: (point) => point.prunedBytes },
];

/** Partitions, seconds and bytes of the runs, from the oldest to the newest. */
export function HistoryCharts({ runs }: { runs: Run[] }) {
  const id = useId();
  const data = useMemo(() => points(runs), [runs]);
  const [keptOnly, setKeptOnly] = useState(() => nearlyAllIsPruned(data));
  const phases = useMemo(
    () =>
      phasesOf(runs).map((name) => ({
        name,
        colour: phaseColour(name),
        value: (point: { seconds: Record<string, number> }) => point.seconds[name] ?? 0,
      })),
    [runs],
  );
  const anyBytes = runs.some((run) => run.read_bytes !== null || run.pruned_bytes !== null);
  return (
    <div className="charts">
      <div>
        <Chart
          title="Partitions"
          points={data}
          series={keptOnly ? [KEPT] : [KEPT, WHOLE, PRUNED]}
          format={count}
          whole
        />
        <p className="check">
          <input
            id={id}
            type="checkbox"
            checked={keptOnly}
            onChange={(event) => setKeptOnly(event.target.checked)}
          />
          <label htmlFor={id}>Only kept partitions of pruned runs</label>
        </p>
      </div>
      {phases.length > 0 && (
        <Chart title="Time by phase" points={data} series={phases} format={seconds} axis={axisSeconds} />
      )}
      {anyBytes && <Chart title="Bytes" points={data} series={BYTES} format={bytes} axis={axisBytes} />}
    </div>
  );
}
