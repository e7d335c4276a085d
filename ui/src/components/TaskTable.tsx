import type { TaskSummary } from "../api/types";
import { bytes, count, ifKnown } from "../format";
import { dateOf } from "../history";
import { pagePath } from "../router";
import { trendInWords } from "../words";
import { DataTable } from "./DataTable";
import { Estimate } from "./Estimate";
import { KeptInWords } from "./RunTable";
import { State } from "./State";
import { Time } from "./Time";

interface Props {
  base: string;
  tasks: TaskSummary[];
  days: number;
  withDag: boolean;
}

/** The tasks in the order of the API, with their last runs and totals. */
export function TaskTable({ base, tasks, days, withDag }: Props) {
  return (
    <DataTable
      caption={`Tasks, with the totals of the last ${days} days`}
      stacking
      rows={tasks}
      keyOf={(task) => JSON.stringify([task.dag_id, task.task_id])}
      heading={{
        label: "Task",
        cell: (task) => (
          <a href={pagePath.history(base, task.dag_id, task.task_id)}>
            {task.group ?? task.task_id}
          </a>
        ),
      }}
      columns={[
        {
          label: "DAG",
          className: "name",
          cell: (task) =>
            withDag ? <a href={pagePath.dag(base, task.dag_id)}>{task.dag_id}</a> : null,
        },
        {
          label: "Pruning",
          cell: (task) => (
            <span className="trend nowrap" data-trend={task.trend}>
              {trendInWords(task.trend)}
            </span>
          ),
        },
        { label: "Last run", cell: (task) => <LastRun base={base} task={task} /> },
        {
          label: "Kept by the last run",
          className: "kept",
          cell: (task) => <KeptInWords run={task.last} />,
        },
        { label: "Runs", numeric: true, cell: (task) => count(task.runs) },
        {
          label: "Partitions pruned",
          numeric: true,
          cell: (task) => count(task.pruned_partitions),
        },
        { label: "Bytes read", numeric: true, cell: (task) => ifKnown(task.read_bytes, bytes) },
        {
          label: "Bytes pruned",
          numeric: true,
          cell: (task) =>
            task.pruned_bytes === null ? null : (
              <Estimate bytes={task.pruned_bytes} estimated={task.estimated} />
            ),
        },
      ]}
    />
  );
}

function LastRun({ base, task }: { base: string; task: TaskSummary }) {
  const { last } = task;
  const href = pagePath.run(base, {
    dagId: task.dag_id,
    runId: last.run_id,
    taskId: task.task_id,
    mapIndex: last.map_index,
  });
  return (
    <>
      <a href={href} className="nowrap">
        <Time iso={last.start_date ?? dateOf(last)} />
      </a>
      <div className="nowrap">
        <State state={last.state} />
      </div>
    </>
  );
}
