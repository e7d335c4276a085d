import { useCallback, useEffect, useRef, useState } from "react";

import { getHistory } from "../api/client";
import type { Run, TaskHistory } from "../api/types";
import { toDag } from "../components/crumbs";
import { Header } from "../components/Header";
import { HistoryCharts } from "../components/HistoryCharts";
import { Waiting } from "../components/Loading";
import { Message } from "../components/Message";
import { RunTable } from "../components/RunTable";
import { Section } from "../components/Section";
import { counted } from "../format";
import { useLoaded } from "../useLoaded";

interface Props {
  base: string;
  dagId: string;
  taskId: string;
}

export function HistoryPage({ base, dagId, taskId }: Props) {
  const load = useCallback(
    (signal: AbortSignal) => getHistory(base, dagId, taskId, null, signal),
    [base, dagId, taskId],
  );
  const [loaded, again] = useLoaded(load);
  if (loaded.status !== "done") {
    const error = loaded.status === "failed" ? loaded.error : null;
    const crumbs = toDag(base, dagId);
    return (
      <Waiting title={taskId} crumbs={crumbs} what="the runs" error={error} again={again} />
    );
  }
  return <History base={base} first={loaded.value} />;
}

function History({ base, first }: { base: string; first: TaskHistory }) {
  const { dag_id: dagId, task_id: taskId } = first;
  const { runs, more, load, loading, error } = useOlder(base, first);
  return (
    <>
      <Header title={taskId} crumbs={toDag(base, dagId)} tab="pruning-of-task" />
      <main>
        {runs.length === 0 ? (
          <Message kind="info">
            <p>{first.note}.</p>
          </Message>
        ) : (
          <>
            <Section title="Over time">
              <HistoryCharts runs={runs} />
            </Section>
            <Section title="Runs">
              <RunTable base={base} dagId={dagId} taskId={taskId} runs={runs} />
              <div className="pager">
                <span role="status">{counted(runs.length, "run")} shown</span>
                {more && (
                  <button type="button" disabled={loading} onClick={load}>
                    {loading ? "Loading older runs…" : "Older runs"}
                  </button>
                )}
              </div>
              {error !== null && <Message kind="error">{error}</Message>}
            </Section>
          </>
        )}
      </main>
    </>
  );
}

/** The runs so far, and how to load the ones before. */
function useOlder(base: string, first: TaskHistory) {
  const [older, setOlder] = useState<Run[]>([]);
  const [more, setMore] = useState(first.more);
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);

  const runs = [...first.runs, ...older];
  const last = runs.at(-1) ?? null;
  const load = () => {
    const { signal } = (controller.current = new AbortController());
    setLoading(true);
    setError(null);
    getHistory(base, first.dag_id, first.task_id, last, signal).then(
      (page) => {
        setOlder((shown) => [...shown, ...page.runs]);
        setMore(page.more);
        setLoading(false);
      },
      (reason: unknown) => {
        if (signal.aborted) return;
        setError(reason instanceof Error ? reason.message : String(reason));
        setLoading(false);
      },
    );
  };
  return { runs, more: more && last !== null, load, loading, error };
}
