import { useCallback, useMemo } from "react";

import { getInstance } from "../api/client";
import { fromApi, type PartitionReader } from "../api/partitions";
import type { Instance } from "../api/types";
import { toTask } from "../components/crumbs";
import { Header } from "../components/Header";
import { Waiting } from "../components/Loading";
import { Message } from "../components/Message";
import { KeyPredicates, Reads } from "../components/Reads";
import { Phases } from "../components/Phases";
import { Plan } from "../components/Plan";
import { RunFacts, SparkFacts } from "../components/RunFacts";
import { RunNotes } from "../components/RunNotes";
import { PartitionLists } from "../components/PartitionLists";
import { ScanList } from "../components/ScanList";
import { Section } from "../components/Section";
import { Statements } from "../components/Statements";
import type { InstanceId } from "../router";
import { useBase } from "../surroundings";
import { useLoaded } from "../useLoaded";

interface Props {
  base: string;
  id: InstanceId;
}

export function RunPage({ base, id }: Props) {
  const { dagId, runId, taskId, mapIndex } = id;
  const load = useCallback(
    (signal: AbortSignal) => getInstance(base, { dagId, runId, taskId, mapIndex }, signal),
    [base, dagId, runId, taskId, mapIndex],
  );
  const reader = useMemo(
    () => fromApi(base, { dagId, runId, taskId, mapIndex }),
    [base, dagId, runId, taskId, mapIndex],
  );
  const [loaded, again] = useLoaded(load);
  if (loaded.status !== "done") {
    const error = loaded.status === "failed" ? loaded.error : null;
    const crumbs = toTask(base, dagId, taskId);
    return (
      <Waiting title={taskId} crumbs={crumbs} what="the run" error={error} again={again} />
    );
  }
  if ("note" in loaded.value) {
    return (
      <>
        <Header title={taskId} crumbs={toTask(base, dagId, taskId)} tab="pruning" />
        <main>
          <Message kind="info">
            <p>{loaded.value.note}.</p>
          </Message>
        </main>
      </>
    );
  }
  return <RunView instance={loaded.value} reader={reader} />;
}

interface ViewProps {
  instance: Instance;
  reader: PartitionReader;
  /** false for the plan of a statement */
  hasRun?: boolean;
}

/** One run, from the API or from the data in the file; or the plan of a statement. */
export function RunView({ instance, reader, hasRun = true }: ViewProps) {
  const base = useBase();
  const { dag_id: dagId, task_id: taskId } = instance;
  const mapped = instance.map_index < 0 ? "" : ` [${instance.map_index}]`;
  const crumbs = hasRun ? toTask(base, dagId, taskId) : [];
  return (
    <>
      <Header title={`${taskId}${mapped}`} crumbs={crumbs} tab="pruning">
        {hasRun && <RunFacts instance={instance} />}
      </Header>
      <main>
        <Headline instance={instance} />
        <RunNotes instance={instance} />
        <Section title="Scans" note={instance.scans.length > 0 ? undefined : noScans(instance)}>
          <ScanList scans={instance.scans} reads={instance.reads} />
        </Section>
        {instance.phases.length > 0 && (
          <Section title="Time and work">
            <Phases phases={instance.phases} />
            <SparkFacts instance={instance} />
          </Section>
        )}
        {(instance.reads.length > 0 || instance.predicates.length > 0) && (
          <Section title="What Spark read">
            {instance.reads.length > 0 && <Reads reads={instance.reads} />}
            {instance.predicates.length > 0 && <KeyPredicates predicates={instance.predicates} />}
          </Section>
        )}
        <Section title="Statement">
          <Statements
            statement={instance.statement}
            scans={instance.scans}
            hasRun={hasRun}
            stopped={instance.stopped !== null}
          />
        </Section>
        <Plan instance={instance} />
        {hasRun && <PartitionLists instance={instance} reader={reader} />}
      </main>
    </>
  );
}

/** What the run kept, or in red what stopped it. */
function Headline({ instance }: { instance: Instance }) {
  const { stopped, state, reason, headline } = instance;
  const kind = stopped !== null && state !== "skipped" ? "stopped" : reason === "PRUNED" ? "" : "whole";
  return (
    <>
      {state === "failed" && stopped === null && (
        <Message kind="error">
          <p>The task failed after its local task. The task&apos;s log says why.</p>
        </Message>
      )}
      <p className={`headline ${kind && `headline-${kind}`}`}>{headline}</p>
    </>
  );
}

function noScans({ reason }: Instance): string {
  return reason === "NO_PARTITIONED_TABLE"
    ? "The statement reads no partitioned table."
    : "The scans of this run are not stored any more.";
}
