import type { TaskSummary, Trend } from "./api/types";

/** The tasks whose DAG or task ID contains the text, with one of the trends; no trend is all. */
export function filtered(tasks: TaskSummary[], text: string, trends: ReadonlySet<Trend>) {
  const wanted = text.trim().toLowerCase();
  return tasks.filter(
    (task) =>
      (trends.size === 0 || trends.has(task.trend)) &&
      `${task.dag_id}.${task.task_id}`.toLowerCase().includes(wanted),
  );
}
