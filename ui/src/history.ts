import type { Run } from "./api/types";
import { shortTime } from "./format";

/** One run as a point of the charts. */
export interface Point {
  /** differs for each task instance, so that no two share a bar */
  key: string;
  label: string;
  run: Run;
  kept: number;
  pruned: number;
  whole: number;
  read: number;
  prunedBytes: number;
  seconds: Record<string, number>;
}

/** The date of the run's data, which for a backfill is long before its start. */
export function dateOf(run: Run): string {
  return run.logical_date ?? run.run_after;
}

/** Mapped task instances of one run differ in the map index only. */
export function nameOf(run: Run): string {
  return run.map_index < 0 ? run.run_id : `${run.run_id} [${run.map_index}]`;
}

export function keyOf(run: Run): string {
  return JSON.stringify([run.run_id, run.map_index, run.try_number]);
}

/** The runs from the oldest to the newest. */
export function points(runs: Run[]): Point[] {
  return runs.toReversed().map((run) => {
    const isPruned = run.reason === "PRUNED";
    const index = run.map_index < 0 ? "" : ` [${run.map_index}]`;
    return {
      key: keyOf(run),
      label: `${shortTime(dateOf(run))}${index}`,
      run,
      kept: isPruned ? run.kept : 0,
      pruned: isPruned ? Math.max(0, run.total - run.kept) : 0,
      whole: isPruned ? 0 : Math.max(run.total, run.kept),
      read: run.read_bytes ?? 0,
      prunedBytes: run.pruned_bytes ?? 0,
      seconds: run.seconds,
    };
  });
}

const NEARLY_ALL = 0.9;

/** Whether the kept partitions would be too low to see beside the pruned ones. */
export function nearlyAllIsPruned(runs: Point[]): boolean {
  const sum = (of: (point: Point) => number) => runs.reduce((all, point) => all + of(point), 0);
  const pruned = sum((point) => point.pruned);
  return pruned > NEARLY_ALL * (pruned + sum((point) => point.kept + point.whole));
}

/** The phases of a run in their order. */
export const PHASES = ["local task", "prelaunch", "map join", "report"];

/** The phases of all runs, in the order of a run. */
export function phasesOf(runs: Run[]): string[] {
  const found = new Set(runs.flatMap((run) => Object.keys(run.seconds)));
  const rest = [...found].filter((name) => !PHASES.includes(name)).sort();
  return [...PHASES.filter((name) => found.has(name)), ...rest];
}
