// The API's answers. They mirror the response models of the API server.

export interface Work {
  metastore_calls: number;
  partitions_fetched: number;
  files_listed: number;
}

export interface Phase {
  name: string;
  seconds: number;
  /** null where it is not counted, as over Spark Connect */
  work: Work | null;
}

/** A small table whose keys are read; `keys` is null before that. */
export interface Source {
  name: string;
  aliases: string[];
  sql: string;
  keys: number | null;
}

/** Characters of the statement from `start` up to, but not including, `stop`. */
export interface Place {
  start: number;
  stop: number;
  line: number;
  column: number;
}

/** Keys of other large tables, of which the statement reads a part. */
export interface Hop {
  source: string;
  keys: number | null;
  seconds: number | null;
  /** the files that the scan reads because of the keys, and otherwise */
  files: number | null;
  files_without: number | null;
}

/** What the run did with the key index of a scan's column; the sentence explains the code. */
export interface IndexUse {
  column: string;
  code: string;
  sentence: string;
  why: string;
  /** the data files that hold the keys, or that the index does not cover; null if it was not asked */
  files: number | null;
  /** those of them that the index does not cover */
  unknown: number | null;
  total_files: number | null;
  /** set if the keys came from other large tables */
  hop: Hop | null;
}

/**
 * One scan of a partitioned table. `kept` and `total` are null for a scan that is not pruned. A table that
 * keeps its own list of files has `files` and `total_files` instead.
 */
export interface Scan {
  /** its name for people, which no other scan of the statement has */
  scan: string;
  alias: string;
  table: string;
  /** the table's name in the statement that ran, start and stop in characters */
  reference: [number, number] | null;
  reason: string;
  sentence: string;
  /** what to do about the reason */
  advice: string | null;
  path: string | null;
  kept: number | null;
  total: number | null;
  files: number | null;
  total_files: number | null;
  way: string | null;
  columns: string[];
  filter: string | null;
  sources: Source[];
  indexes: IndexUse[];
  place: Place | null;
}

/** Keys that became a condition on a data column. */
export interface KeyPredicate {
  scan: string;
  alias: string;
  table: string;
  column: string;
  keys: number;
  range: boolean;
}

/** A small table that was left out with its join. */
export interface EliminatedJoin {
  scan: string;
  table: string;
}

/** What Spark read of a table, from its own metrics. */
export interface TableRead {
  table: string;
  partitions: number | null;
  files: number | null;
  bytes: number | null;
  total_bytes: number | null;
}

export interface Stage {
  id: string;
  kind: string;
  depends_on: string[];
  /** the numbers of the stage's scans in the list of the instance, from 0 */
  scans: number[];
  details: string[];
}

export interface Statement {
  user: string | null;
  ran: string | null;
  cut: boolean;
}

export interface Instance {
  dag_id: string;
  run_id: string;
  task_id: string;
  map_index: number;
  try_number: number | null;
  state: string | null;
  logical_date: string | null;
  start_date: string | null;
  duration: number | null;
  headline: string;
  /** why a gate ended the run before its join */
  stopped: string | null;
  reason: string;
  kept: number;
  total: number;
  scans: Scan[];
  predicates: KeyPredicate[];
  reads: TableRead[];
  phases: Phase[];
  statement: Statement;
  stages: Stage[];
  eliminated: EliminatedJoin[];
  vanished: number;
  appeared: number;
  /** the seconds of the task's last runs: with key indexes, without, and as the statement is */
  index_trial: { used: number | null; left_out: number | null; untouched: number | null } | null;
  driver_peak_heap: number | null;
  application_id: string | null;
  spark_ui_url: string | null;
  descriptor: "there" | "deleted" | "elsewhere" | "unreadable" | "outside";
  descriptor_note: string;
}

/** In place of a task instance that has nothing to show. */
export interface Note {
  note: string;
}

export interface ReasonCode {
  code: string;
  sentence: string;
  advice: string | null;
}

export interface Partition {
  /** null is the NULL partition */
  values: (string | null)[];
  name: string;
  location: string | null;
  rows: number | null;
  bytes: number | null;
}

export interface PartitionPage {
  scan: string;
  table: string;
  reference: [number, number] | null;
  columns: string[];
  found: number;
  total: number;
  partitions: Partition[];
}

/** One task instance in a task's history. */
export interface Run {
  run_id: string;
  map_index: number;
  try_number: number | null;
  state: string | null;
  logical_date: string | null;
  run_after: string;
  start_date: string | null;
  reason: string;
  kept: number;
  total: number;
  seconds: Record<string, number>;
  read_bytes: number | null;
  pruned_bytes: number | null;
  /** whether `pruned_bytes` is */
  estimated: boolean;
  stopped: string | null;
  change: string | null;
}

export interface TaskHistory {
  dag_id: string;
  task_id: string;
  runs: Run[];
  more: boolean;
  /** why there are no runs */
  note: string | null;
}

export type Trend = "pruned" | "worse" | "nothing pruned";

export interface TaskSummary {
  dag_id: string;
  task_id: string;
  /** the task group whose two tasks are this row */
  group: string | null;
  last: Run;
  runs: number;
  pruned_partitions: number;
  pruned_bytes: number | null;
  estimated: boolean;
  read_bytes: number | null;
  trend: Trend;
}

export interface Overview {
  days: number;
  pruned_partitions: number;
  pruned_bytes: number | null;
  estimated: boolean;
  runs: number;
  tasks: TaskSummary[];
}

/** The content of a self-contained file. */
export interface FileData {
  /** a run, or the plan of a statement that has not run */
  kind: "instance" | "plan";
  data: Instance;
  partitions: PartitionPage[];
}
