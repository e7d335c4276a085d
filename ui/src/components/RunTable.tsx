import type { Run } from "../api/types";
import { bytes, count, ifKnown, prunedPercent, seconds } from "../format";
import { keyOf } from "../history";
import { pagePath } from "../router";
import { DataTable } from "./DataTable";
import { Estimate } from "./Estimate";
import { KeptBar } from "./KeptBar";
import { State } from "./State";
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
    <DataTable
      caption={`Runs of ${taskId}, newest first`}
      stacking
      rows={runs}
      keyOf={keyOf}
      rowClass={(run) => (run.change === null ? undefined : "changed")}
      heading={{
        label: "Run",
        cell: (run) => (
          <>
            <a href={href(run)}>{run.run_id}</a>
            {run.change !== null && <div className="change">Changed: {run.change}</div>}
          </>
        ),
      }}
      columns={[
        {
          label: "Map index",
          numeric: true,
          cell: (run) => (mapped ? (run.map_index < 0 ? "–" : run.map_index) : null),
        },
        {
          label: "Logical date",
          className: "nowrap",
          cell: (run) => run.logical_date && <Time iso={run.logical_date} />,
        },
        {
          label: "Started",
          className: "nowrap",
          cell: (run) => run.start_date && <Time iso={run.start_date} />,
        },
        {
          label: "State",
          cell: (run) => (
            <>
              <State state={run.state} />
              {(run.try_number ?? 1) > 1 && <div className="muted nowrap">try {run.try_number}</div>}
            </>
          ),
        },
        { label: "Kept", className: "kept", cell: (run) => <KeptInWords run={run} /> },
        {
          label: "Time",
          numeric: true,
          cell: (run) => seconds(Object.values(run.seconds).reduce(sum, 0)),
        },
        { label: "Read", numeric: true, cell: (run) => ifKnown(run.read_bytes, bytes) },
        {
          label: "Pruned",
          numeric: true,
          cell: (run) =>
            run.pruned_bytes === null ? null : (
              <Estimate bytes={run.pruned_bytes} estimated={run.estimated} />
            ),
        },
      ]}
    />
  );
}

function sum(a: number, b: number): number {
  return a + b;
}

/** A small bar, and the same in words. */
export function KeptInWords({ run }: { run: Run }) {
  return (
    <>
      {run.stopped !== null && (
        <div className={run.state === "skipped" ? "muted" : "stopped"}>
          stopped before the join: {run.stopped}
        </div>
      )}
      <Kept run={run} />
    </>
  );
}

function Kept({ run }: { run: Run }) {
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
