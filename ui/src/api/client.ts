import { apiPath, type InstanceId, type LastRun } from "../router";
import type { Instance, Note, Overview, ReasonCode, TaskHistory } from "./types";

/** An answer other than 200, in words. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function getJson<T>(url: string, signal: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, {
      credentials: "same-origin",
      headers: { Accept: "application/json" },
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, "The API server does not answer. Check the network, then try again.");
  }
  if (!response.ok) throw new ApiError(response.status, await inWords(response));
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(response.status, "The API server's answer is not JSON.");
  }
}

async function inWords(response: Response): Promise<string> {
  const detail = await detailOf(response);
  if (response.status === 401) {
    return `You are not logged in. Log in to Airflow, then load this page again.${also(detail)}`;
  }
  if (response.status === 403) {
    return `You do not have the permission to read this DAG's XComs.${also(detail)}`;
  }
  return detail ?? `The API server answered with status ${response.status}.`;
}

/** FastAPI's `{"detail": "..."}`; generic details add nothing. */
async function detailOf(response: Response): Promise<string | null> {
  try {
    const body = (await response.json()) as { detail?: unknown };
    const detail = typeof body.detail === "string" ? body.detail.trim() : "";
    return detail === "" ? null : detail;
  } catch {
    return null;
  }
}

function also(detail: string | null): string {
  const generic = /^(not authenticated|unauthorized|forbidden|invalid jwt token)$/i;
  return detail === null || generic.test(detail) ? "" : ` (${detail})`;
}

export function getOverview(base: string, dagId: string | null, signal: AbortSignal) {
  return getJson<Overview>(apiPath.overview(base, dagId), signal);
}

export function getHistory(
  base: string,
  dagId: string,
  taskId: string,
  last: LastRun | null,
  signal: AbortSignal,
) {
  return getJson<TaskHistory>(apiPath.history(base, dagId, taskId, last), signal);
}

export function getInstance(base: string, id: InstanceId, signal: AbortSignal) {
  return getJson<Instance | Note>(apiPath.instance(base, id), signal);
}

export function getReasons(base: string, signal: AbortSignal) {
  return getJson<ReasonCode[]>(apiPath.reasons(base), signal);
}
