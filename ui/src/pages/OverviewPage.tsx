import { useCallback, useId, useState } from "react";

import { getOverview } from "../api/client";
import type { Overview, Trend } from "../api/types";
import { toAll } from "../components/crumbs";
import { Header } from "../components/Header";
import { Waiting } from "../components/Loading";
import { Message } from "../components/Message";
import { Section } from "../components/Section";
import { TaskTable } from "../components/TaskTable";
import { Totals } from "../components/Totals";
import { filtered } from "../filter";
import { counted } from "../format";
import { useLoaded } from "../useLoaded";

interface Props {
  base: string;
  /** null for all DAGs */
  dagId: string | null;
}

export function OverviewPage({ base, dagId }: Props) {
  const load = useCallback(
    (signal: AbortSignal) => getOverview(base, dagId, signal),
    [base, dagId],
  );
  const [loaded, again] = useLoaded(load);
  const title = dagId ?? "Partition pruning";
  const crumbs = dagId === null ? [] : toAll(base);
  if (loaded.status !== "done") {
    const error = loaded.status === "failed" ? loaded.error : null;
    return (
      <Waiting title={title} crumbs={crumbs} what="the tasks" error={error} again={again} />
    );
  }
  return (
    <>
      <Header title={title} crumbs={crumbs} tab={dagId === null ? undefined : "pruning-of-dag"} />
      <main>
        {loaded.value.tasks.length === 0 ? (
          <Message kind="info">
            In the last {counted(loaded.value.days, "day")}, no <code>MapJoinPruneOperator</code>{" "}
            {dagId === null ? "in a DAG that you may read" : "of this DAG"} has run. After its next
            run, this page shows how many partitions each task kept and how many it pruned.
          </Message>
        ) : (
          <Tasks base={base} overview={loaded.value} dagId={dagId} />
        )}
      </main>
    </>
  );
}

const CHIPS: { trend: Trend; label: string }[] = [
  { trend: "nothing pruned", label: "Nothing pruned" },
  { trend: "worse", label: "Got worse" },
];

function Tasks({ base, overview, dagId }: Props & { overview: Overview }) {
  const [text, setText] = useState("");
  const [trends, setTrends] = useState<ReadonlySet<Trend>>(new Set());
  const id = useId();
  const shown = filtered(overview.tasks, text, trends);
  const toggle = (trend: Trend) =>
    setTrends((before) => {
      const after = new Set(before);
      if (!after.delete(trend)) after.add(trend);
      return after;
    });
  return (
    <>
      <Totals overview={overview} />
      <Section title="Tasks">
        <div className="tools">
          <label htmlFor={id}>{dagId === null ? "Filter by DAG or task" : "Filter by task"}</label>
          <input
            id={id}
            type="search"
            value={text}
            placeholder="part of a name"
            onChange={(event) => setText(event.target.value)}
          />
          <span className="chips" role="group" aria-label="Show only tasks with">
            {CHIPS.map(({ trend, label }) => (
              <button
                key={trend}
                type="button"
                className="chip"
                aria-pressed={trends.has(trend)}
                onClick={() => toggle(trend)}
              >
                {label} ({overview.tasks.filter((task) => task.trend === trend).length})
              </button>
            ))}
          </span>
        </div>
        <p className="hidden" role="status">
          {counted(shown.length, "task")} shown
        </p>
        {shown.length === 0 ? (
          <p className="muted">No task matches.</p>
        ) : (
          <TaskTable base={base} tasks={shown} days={overview.days} withDag={dagId === null} />
        )}
      </Section>
    </>
  );
}
