import type { Run } from "./api/types";

/** One task instance, as the API names it. */
export interface InstanceId {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number;
}

export type Page =
  | { kind: "overview" }
  | { kind: "dag"; dagId: string }
  | { kind: "history"; dagId: string; taskId: string }
  | { kind: "run"; id: InstanceId }
  | { kind: "reasons" }
  | { kind: "unknown" };

/** The page of a path below `base`, which is the path of `data-base`. */
export function pageOf(base: string, path: string, query: string): Page {
  const prefix = `${base}/pages`;
  if (path !== prefix && !path.startsWith(`${prefix}/`)) return { kind: "unknown" };
  const parts = path.slice(prefix.length).split("/").filter(Boolean).map(decoded);
  const [first, dagId, second, third, fourth, taskId] = parts;
  if (first === undefined) return { kind: "overview" };
  if (first === "reasons" && parts.length === 1) return { kind: "reasons" };
  if (first !== "dags" || dagId === undefined) return { kind: "unknown" };
  if (parts.length === 2) return { kind: "dag", dagId };
  if (parts.length === 4 && second === "tasks" && third !== undefined) {
    return { kind: "history", dagId, taskId: third };
  }
  if (
    parts.length === 6 &&
    second === "runs" &&
    fourth === "tasks" &&
    third !== undefined &&
    taskId !== undefined
  ) {
    return { kind: "run", id: { dagId, runId: third, taskId, mapIndex: mapIndexOf(query) } };
  }
  return { kind: "unknown" };
}

/** The task instance of a link of Airflow's page, such as `/dags/a/descriptor?run_id=b&task_id=c`. */
export function instanceOfLink(base: string, path: string, query: string): InstanceId | null {
  const [first, dagId] = path.slice(base.length).split("/").filter(Boolean).map(decoded);
  const asked = new URLSearchParams(query);
  const [runId, taskId] = [asked.get("run_id"), asked.get("task_id")];
  if (first !== "dags" || dagId === undefined || runId === null || taskId === null) return null;
  return { dagId, runId, taskId, mapIndex: mapIndexOf(query) };
}

/** -1 for everything but a number: Airflow leaves `{MAP_INDEX}` as it is if a task is not mapped. */
export function mapIndexOf(query: string): number {
  const value = new URLSearchParams(query).get("map_index") ?? "";
  return /^\d{1,9}$/.test(value) ? Number(value) : -1;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Encodes an ID as one path segment. Leaves `:` and `+`, as browsers do in paths: Airflow compares
 * an embedded page's path with its own spelling, and loads the page again if they differ.
 */
export function segment(id: string): string {
  if (id === "." || id === "..") return id.replaceAll(".", "%2E");
  return encodeURIComponent(id).replaceAll("%3A", ":").replaceAll("%2B", "+");
}

/** `data-base` as a path without a slash at its end. It may also be a whole address. */
export function basePath(dataBase: string, location: string): string {
  return new URL(dataBase || "/", location).pathname.replace(/\/+$/, "");
}

function mapped(id: InstanceId): string {
  return id.mapIndex < 0 ? "" : `?map_index=${id.mapIndex}`;
}

function instancePath(id: InstanceId): string {
  return `dags/${segment(id.dagId)}/runs/${segment(id.runId)}/tasks/${segment(id.taskId)}`;
}

/** Addresses of our own pages. */
export const pagePath = {
  overview: (base: string) => `${base}/pages/`,
  dag: (base: string, dagId: string) => `${base}/pages/dags/${segment(dagId)}`,
  history: (base: string, dagId: string, taskId: string) =>
    `${base}/pages/dags/${segment(dagId)}/tasks/${segment(taskId)}`,
  run: (base: string, id: InstanceId) => `${base}/pages/${instancePath(id)}${mapped(id)}`,
  reason: (base: string, code: string) => `${base}/pages/reasons#${segment(code)}`,
};

export interface PartitionQuery {
  scan: number;
  search: string;
  offset: number;
  limit: number;
}

/** Where a page of the history ended. */
export type LastRun = Pick<Run, "run_after" | "run_id" | "map_index">;

/** Addresses of the API. */
export const apiPath = {
  overview: (base: string, dagId: string | null) =>
    `${base}/api/tasks${dagId === null ? "" : `?${query({ dag_id: dagId })}`}`,
  reasons: (base: string) => `${base}/api/reasons`,
  history: (base: string, dagId: string, taskId: string, last: LastRun | null) =>
    `${base}/api/dags/${segment(dagId)}/tasks/${segment(taskId)}?` +
    query(
      last === null
        ? { limit: 100 }
        : {
            limit: 100,
            before: last.run_after,
            before_run_id: last.run_id,
            before_map_index: last.map_index,
          },
    ),
  instance: (base: string, id: InstanceId) =>
    `${base}/api/${instancePath(id)}?${query({ map_index: id.mapIndex })}`,
  partitions: (base: string, id: InstanceId, { scan, search, offset, limit }: PartitionQuery) =>
    `${base}/api/${instancePath(id)}/partitions?` +
    query({ map_index: id.mapIndex, scan, search, offset, limit }),
  download: (base: string, id: InstanceId, scan: number, format: "csv" | "json") =>
    `${base}/api/${instancePath(id)}/partitions.${format}?` +
    query({ map_index: id.mapIndex, scan }),
};

function query(values: Record<string, string | number>): string {
  return new URLSearchParams(
    Object.entries(values).map(([name, value]) => [name, String(value)]),
  ).toString();
}
