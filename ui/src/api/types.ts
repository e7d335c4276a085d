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

/**
 * One scan of a partitioned table. `kept` and `total` are null for a scan read whole. A table that
 * keeps its own list of files has `files` and `total_files` instead.
 */
export interface Scan {
  alias: string;
  table: string;
  reason: string;
  sentence: string;
  path: string | null;
  kept: number | null;
  total: number | null;
  files: number | null;
  total_files: number | null;
  way: string | null;
  columns: string[];
  filter: string | null;
  sources: Source[];
  place: Place | null;
}

/** Keys that became a condition on a data column. */
export interface KeyPredicate {
  alias: string;
  table: string;
  column: string;
  keys: number;
  range: boolean;
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
  /** aliases of the tables that the stage scans */
  scans: string[];
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
  reason: string;
  kept: number;
  total: number;
  scans: Scan[];
  predicates: KeyPredicate[];
  reads: TableRead[];
  phases: Phase[];
  statement: Statement;
  stages: Stage[];
  eliminated: string[];
  vanished: number;
  appeared: number;
  driver_peak_heap: number | null;
  application_id: string | null;
  spark_ui_url: string | null;
  descriptor: "there" | "deleted" | "unreadable" | "outside";
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
  alias: string;
  table: string;
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
  change: string | null;
}

export interface TaskHistory {
  dag_id: string;
  task_id: string;
  runs: Run[];
  more: boolean;
}

export type Trend = "pruned" | "worse" | "nothing pruned";

export interface TaskSummary {
  dag_id: string;
  task_id: string;
  last: Run;
  runs: number;
  pruned_partitions: number;
  pruned_bytes: number | null;
  read_bytes: number | null;
  trend: Trend;
}

export interface Overview {
  days: number;
  pruned_partitions: number;
  pruned_bytes: number | null;
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
