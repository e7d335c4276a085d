import { pagePath } from "../router";
import type { Crumb } from "./Header";

export function toAll(base: string): Crumb[] {
  return [{ label: "All tasks", href: pagePath.overview(base) }];
}

export function toDag(base: string, dagId: string): Crumb[] {
  return [...toAll(base), { label: dagId, href: pagePath.dag(base, dagId) }];
}

/** The way to a task's history; without a base the names only. */
export function toTask(base: string | null, dagId: string, taskId: string): Crumb[] {
  if (base === null) {
    return [dagId, taskId].filter(Boolean).map((label) => ({ label, href: null }));
  }
  return [...toDag(base, dagId), { label: taskId, href: pagePath.history(base, dagId, taskId) }];
}
