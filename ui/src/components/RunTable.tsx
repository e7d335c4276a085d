import type { Run } from "../api/types";
import { bytes, count, orUnknown, prunedPercent, seconds } from "../format";
import { keyOf, timeOf } from "../history";
import { pagePath } from "../router";
import { KeptBar } from "./KeptBar";
import { State } from "./State";
import { Cell, NumberCell, Table } from "./Table";
import { Time } from "./Time";

interface Props {
  base: string;
  dagId: string;
  taskId: string;
  runs: Run[];
}

/** The runs, newest first. A run whose pruning changed stands out. */
export function RunTable({ base, dagId, taskId, runs }: Props) {
  const mapped = runs.some((run) => run.map_index >= 0);
  const href = (run: Run) =>
    pagePath.run(base, { dagId, runId: run.run_id, taskId, mapIndex: run.map_index });
  return (
    <Table
      caption={`Runs of ${taskId}, newest first`}
      stacking
      head={[
        { label: "Run" },
        ...(mapped ? [{ label: "Map index", numeric: true }] : []),
        { label: "Started" },
        { label: "State" },
        { label: "Kept" },
        { label: "Time", numeric: true },
        { label: "Read", numeric: true },
        { label: "Pruned", numeric: true },
      ]}
    >
      {runs.map((run) => (
        <tr key={keyOf(run)} className={run.change === null ? undefined : "changed"}>
          <th scope="row">
            <a href={href(run)}>{run.run_id}</a>
            {run.change !== null && <div className="change">Changed: {run.change}</div>}
          </th>
          {mapped && (
            <NumberCell label="Map index">{run.map_index < 0 ? "–" : run.map_index}</NumberCell>
          )}
          <Cell label="Started" className="nowrap">
            <Time iso={timeOf(run)} />
          </Cell>
          <Cell label="State">
            <State state={run.state} />
            {(run.try_number ?? 1) > 1 && (
              <div className="muted nowrap">try {run.try_number}</div>
            )}
          </Cell>
          <Cell label="Kept" className="kept">
            <KeptInWords run={run} />
          </Cell>
          <NumberCell label="Time">
            {seconds(Object.values(run.seconds).reduce(sum, 0))}
          </NumberCell>
          <NumberCell label="Read">{orUnknown(run.read_bytes, bytes)}</NumberCell>
          <NumberCell label="Pruned">{orUnknown(run.pruned_bytes, bytes)}</NumberCell>
        </tr>
      ))}
    </Table>
  );
}

function sum(a: number, b: number): number {
  return a + b;
}

/** A small bar, and the same in words. */
export function KeptInWords({ run }: { run: Run }) {
  if (run.reason !== "PRUNED") {
    return (
      <>
        <KeptBar kept={null} total={null} />
        <span className="whole">
          nothing pruned <code>{run.reason}</code>
        </span>
      </>
    );
  }
  if (run.total === 0) {
    return <span className="whole">files by condition</span>;
  }
  return (
    <>
      <KeptBar kept={run.kept} total={run.total} />
      <span className="nowrap">
        {count(run.kept)} of {count(run.total)}{" "}
        <span className="muted">({prunedPercent(run.kept, run.total)} pruned)</span>
      </span>
    </>
  );
}
