import { segment, type InstanceId } from "./router";

type OuterWindow = Window & typeof globalThis;

/** The window of Airflow's UI, if it embeds this page and has the same origin. */
export function parentWindow(): OuterWindow | null {
  try {
    if (window.parent === window) return null;
    void window.parent.document.documentElement.className;
    return window.parent as OuterWindow;
  } catch {
    return null;
  }
}

/** The last parts of the addresses of Airflow's tabs, as the plugin names them. */
export type Tab = "pruning" | "pruning-of-task" | "pruning-of-dag";

/** Whether the page is in this tab of Airflow's UI, whose header names what the page is about. */
export function isInTab(tab: Tab): boolean {
  return parentWindow()?.location.pathname.endsWith(`/plugin/${tab}`) ?? false;
}

/** Airflow's own base path: `data-base` without its last part. */
export function airflowBase(base: string): string {
  return base.replace(/\/[^/]*$/, "");
}

export function taskInstancePath(base: string, id: InstanceId): string {
  const task = `${segment(id.dagId)}/runs/${segment(id.runId)}/tasks/${segment(id.taskId)}`;
  return `${airflowBase(base)}/dags/${task}${id.mapIndex < 0 ? "" : `/mapped/${id.mapIndex}`}`;
}

/** Opens a page of Airflow in Airflow's own router. False: not embedded, follow the link. */
export function openInAirflow(path: string): boolean {
  const outer = parentWindow();
  if (outer === null) return false;
  try {
    // React Router keeps the position in `idx` and the entry's name in `key`.
    const index = (outer.history.state as { idx?: number } | null)?.idx ?? 0;
    const state = { usr: null, key: Math.random().toString(36).slice(2, 10), idx: index + 1 };
    outer.history.pushState(state, "", path);
    outer.dispatchEvent(new outer.PopStateEvent("popstate", { state }));
    return true;
  } catch {
    return false;
  }
}

/**
 * Follows a link from Airflow's document, because its sandbox lets this page neither download nor
 * open another window. False: not embedded, follow the link.
 */
export function clickInAirflow(link: { href: string; download?: string; target?: string }): boolean {
  const outer = parentWindow();
  if (outer === null) return false;
  try {
    const anchor = outer.document.createElement("a");
    anchor.href = link.href;
    if (link.download !== undefined) anchor.download = link.download;
    if (link.target !== undefined) anchor.target = link.target;
    anchor.rel = "noopener noreferrer";
    anchor.click();
    return true;
  } catch {
    return false;
  }
}

/** The address if it is one of the web, else null: it comes from a setting and from XCom. */
export function webAddress(address: string | null): string | null {
  if (address === null) return null;
  try {
    const url = new URL(address);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
