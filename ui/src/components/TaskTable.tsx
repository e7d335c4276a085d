import type { TaskSummary } from "../api/types";
import { bytes, count, orUnknown } from "../format";
import { timeOf } from "../history";
import { pagePath } from "../router";
import { trendInWords } from "../words";
import { KeptInWords } from "./RunTable";
import { State } from "./State";
import { Cell, NumberCell, Table } from "./Table";
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
    <Table
      caption={`Tasks, with the totals of the last ${days} days`}
      stacking
      head={[
        { label: "Task" },
        ...(withDag ? [{ label: "DAG" }] : []),
        { label: "Pruning" },
        { label: "Last run" },
        { label: "Kept by the last run" },
        { label: "Runs", numeric: true },
        { label: "Partitions pruned", numeric: true },
        { label: "Bytes read", numeric: true },
        { label: "Bytes pruned", numeric: true },
      ]}
    >
      {tasks.map((task) => (
        <tr key={JSON.stringify([task.dag_id, task.task_id])}>
          <th scope="row">
            <a href={pagePath.history(base, task.dag_id, task.task_id)}>{task.task_id}</a>
          </th>
          {withDag && (
            <Cell label="DAG" className="name">
              <a href={pagePath.dag(base, task.dag_id)}>{task.dag_id}</a>
            </Cell>
          )}
          <Cell label="Pruning">
            <span className="trend nowrap" data-trend={task.trend}>
              {trendInWords(task.trend)}
            </span>
          </Cell>
          <Cell label="Last run">
            <LastRun base={base} task={task} />
          </Cell>
          <Cell label="Kept by the last run" className="kept">
            <KeptInWords run={task.last} />
          </Cell>
          <NumberCell label="Runs">{count(task.runs)}</NumberCell>
          <NumberCell label="Partitions pruned">{count(task.pruned_partitions)}</NumberCell>
          <NumberCell label="Bytes read">{orUnknown(task.read_bytes, bytes)}</NumberCell>
          <NumberCell label="Bytes pruned">{orUnknown(task.pruned_bytes, bytes)}</NumberCell>
        </tr>
      ))}
    </Table>
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
  const time = timeOf(last);
  return (
    <>
      <a href={href} className={time === null ? undefined : "nowrap"}>
        {time === null ? last.run_id : <Time iso={time} />}
      </a>
      <div className="nowrap">
        <State state={last.state} />
      </div>
    </>
  );
}
