import { describe, expect, it } from "vitest";

import { airflowBase, taskInstancePath, webAddress } from "./airflowLinks";
import { apiPath, basePath, instanceOfLink, mapIndexOf, pageOf, pagePath, segment } from "./router";

const BASE = "/base/hive_opt";
const RUN = "manual__2026-01-31T00:00:00+00:00";
const ID = { dagId: "sales", runId: RUN, taskId: "group.join", mapIndex: 3 };

describe("pageOf", () => {
  it("knows each page", () => {
    expect(pageOf(BASE, `${BASE}/pages`, "")).toEqual({ kind: "overview" });
    expect(pageOf(BASE, `${BASE}/pages/`, "")).toEqual({ kind: "overview" });
    expect(pageOf(BASE, `${BASE}/pages/dags/sales`, "")).toEqual({ kind: "dag", dagId: "sales" });
    expect(pageOf(BASE, `${BASE}/pages/dags/sales/tasks/t`, "")).toEqual({
      kind: "history",
      dagId: "sales",
      taskId: "t",
    });
  });

  it("reads its own addresses", () => {
    const address = new URL(pagePath.run(BASE, ID), "http://airflow.test");
    expect(pageOf(BASE, address.pathname, address.search)).toEqual({ kind: "run", id: ID });
    const other = { dagId: "a<b>", runId: "x %2F y", taskId: "tänk", mapIndex: -1 };
    const second = new URL(pagePath.run(BASE, other), "http://airflow.test");
    expect(pageOf(BASE, second.pathname, second.search)).toEqual({ kind: "run", id: other });
  });

  it("reads encoded colons and pluses", () => {
    const path = `${BASE}/pages/dags/sales/runs/${encodeURIComponent(RUN)}/tasks/group.join`;
    expect(pageOf(BASE, path, "?map_index=3")).toEqual({ kind: "run", id: ID });
  });

  it("knows the run of a link of Airflow", () => {
    const query = `?run_id=${encodeURIComponent(RUN)}&task_id=group.join&map_index=3`;
    expect(instanceOfLink(BASE, `${BASE}/dags/sales/descriptor`, query)).toEqual(ID);
    expect(instanceOfLink(BASE, `${BASE}/dags/sales/descriptor`, "")).toBeNull();
    expect(instanceOfLink(BASE, `${BASE}/pages/`, query)).toBeNull();
  });

  it("rejects other addresses", () => {
    for (const path of ["/", `${BASE}/pagesx`, `${BASE}/pages/x`, `${BASE}/pages/dags/a/b`]) {
      expect(pageOf(BASE, path, "")).toEqual({ kind: "unknown" });
    }
  });
});

describe("mapIndexOf", () => {
  it.each([
    ["", -1],
    ["?map_index=-1", -1],
    ["?map_index={MAP_INDEX}", -1],
    ["?map_index=%7BMAP_INDEX%7D", -1],
    ["?map_index=1.5", -1],
    ["?map_index=0", 0],
    ["?map_index=12", 12],
  ])("of %s is %d", (query, index) => {
    expect(mapIndexOf(query)).toBe(index);
  });
});

describe("addresses", () => {
  it("encodes what a path segment can't contain", () => {
    expect(segment("a/b c?#%")).toBe("a%2Fb%20c%3F%23%25");
    expect(segment(RUN)).toBe(RUN);
    expect(segment("..")).toBe("%2E%2E");
  });

  it("asks the API", () => {
    expect(apiPath.overview("", null)).toBe("/api/tasks");
    expect(apiPath.overview(BASE, "a&b")).toBe(`${BASE}/api/tasks?dag_id=a%26b`);
    const last = { run_after: "2026-01-31T00:00:00+00:00", run_id: "a&b", map_index: 3 };
    expect(apiPath.history(BASE, "d", "t", last)).toBe(
      `${BASE}/api/dags/d/tasks/t?limit=100&before=2026-01-31T00%3A00%3A00%2B00%3A00` +
        "&before_run_id=a%26b&before_map_index=3",
    );
    expect(apiPath.download(BASE, ID, 1, "csv")).toBe(
      `${BASE}/api/dags/sales/runs/${RUN}/tasks/group.join/partitions.csv?map_index=3&scan=1`,
    );
  });

  it("finds the base in data-base", () => {
    expect(basePath("/base/hive_opt/", "http://a.test/x")).toBe(BASE);
    expect(basePath("http://a.test/base/hive_opt", "http://a.test/x")).toBe(BASE);
    expect(basePath("", "http://a.test/x")).toBe("");
  });

  it("leads to Airflow's own pages", () => {
    expect(airflowBase(BASE)).toBe("/base");
    expect(airflowBase("/hive_opt")).toBe("");
    expect(taskInstancePath("/hive_opt", { ...ID, mapIndex: -1 })).toBe(
      `/dags/sales/runs/${RUN}/tasks/group.join`,
    );
    expect(taskInstancePath(BASE, ID)).toBe(`/base/dags/sales/runs/${RUN}/tasks/group.join/mapped/3`);
  });

  it("opens web addresses only", () => {
    expect(webAddress("https://spark.test/app-1")).toBe("https://spark.test/app-1");
    expect(webAddress("javascript:alert(1)")).toBeNull();
    expect(webAddress("no address")).toBeNull();
    expect(webAddress(null)).toBeNull();
  });
});
