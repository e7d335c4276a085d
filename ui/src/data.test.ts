import { describe, expect, it } from "vitest";

import { fromFile, select, toCsv } from "./api/partitions";
import type { PartitionPage, Run, TaskSummary } from "./api/types";
import { filtered } from "./filter";
import { shortTime } from "./format";
import { knownColumns, type Column } from "./components/DataTable";
import { nearlyAllIsPruned, phasesOf, points } from "./history";

const LIST: PartitionPage = {
  scan: "s",
  table: "sales",
  reference: [14, 19],
  columns: ["ds", "region"],
  found: 3,
  total: 3,
  partitions: [
    { values: ["2024-01-01", "EU"], name: "ds=2024-01-01/region=EU", location: "s3://b/1", rows: 5, bytes: 9 },
    { values: ["2024-01-02", 'a "b", c'], name: "ds=2024-01-02/region=x", location: null, rows: null, bytes: null },
    { values: [null, "US"], name: "ds=__HIVE_DEFAULT_PARTITION__/region=US", location: null, rows: null, bytes: 0 },
  ],
};

function run(change: Partial<Run>): Run {
  return {
    run_id: "r",
    map_index: -1,
    try_number: 1,
    state: "success",
    logical_date: null,
    run_after: "2026-01-31T00:00:00Z",
    start_date: null,
    reason: "PRUNED",
    kept: 30,
    total: 366,
    seconds: { "map join": 2, "local task": 1 },
    read_bytes: null,
    pruned_bytes: null,
    estimated: false,
    stopped: null,
    change: null,
    ...change,
  };
}

describe("partitions in the file", () => {
  it("are searched and paged", () => {
    expect(select(LIST, "", 1, 1).partitions).toEqual([LIST.partitions[1]]);
    expect(select(LIST, " eu ", 0, 100)).toMatchObject({ found: 1, total: 3 });
    expect(select(LIST, "null", 0, 100).partitions).toEqual([LIST.partitions[2]]);
  });

  it("become CSV", () => {
    expect(toCsv(LIST).split("\r\n")).toEqual([
      "ds,region,partition,location,rows,bytes",
      "2024-01-01,EU,ds=2024-01-01/region=EU,s3://b/1,5,9",
      '2024-01-02,"a ""b"", c",ds=2024-01-02/region=x,,,',
      ",US,ds=__HIVE_DEFAULT_PARTITION__/region=US,,,0",
      "",
    ]);
  });

  it("become CSV without formulas", () => {
    const [partition] = LIST.partitions;
    const values = ["=1+1", "-5.5"];
    const list = { ...LIST, partitions: [{ ...partition!, values, name: "@a", location: "-b" }] };
    expect(toCsv(list).split("\r\n")[1]).toBe("'=1+1,-5.5,'@a,'-b,5,9");
  });

  it("are found by the reference of their scan", async () => {
    const signal = new AbortController().signal;
    const other: PartitionPage = { ...LIST, scan: "s (line 2)", reference: [60, 65], partitions: [] };
    const reader = fromFile([LIST, other]);
    expect((await reader.page(60, "", 0, 100, signal)).scan).toBe("s (line 2)");
    expect((await reader.page(14, "", 0, 100, signal)).partitions).toHaveLength(3);
  });

  it("are missing if the file does not have them", async () => {
    const signal = new AbortController().signal;
    await expect(fromFile([]).page(0, "", 0, 100, signal)).rejects.toThrow("does not contain");
  });
});

describe("history", () => {
  it("runs from the oldest to the newest, mapped instances apart", () => {
    const found = points([run({ map_index: 1 }), run({ map_index: 0, reason: "DISABLED", kept: 366 })]);
    expect(found.map(({ kept, pruned, whole }) => [kept, pruned, whole])).toEqual([
      [0, 0, 366],
      [30, 336, 0],
    ]);
    expect(new Set(found.map((point) => point.key)).size).toBe(2);
  });

  it("is labelled with the dates of the data, also of other years", () => {
    const dates = ["2000-11-01T12:00:00Z", null].map((logical_date) => run({ logical_date }));
    const labels = points(dates).map((point) => point.label);
    expect(labels).toEqual([shortTime("2026-01-31T00:00:00Z"), "2000-11-01"]);
  });

  it("shows the kept partitions alone if nearly all are pruned", () => {
    expect(nearlyAllIsPruned(points([run({ kept: 30, total: 366 })]))).toBe(true);
    expect(nearlyAllIsPruned(points([run({ kept: 300, total: 366 })]))).toBe(false);
    expect(nearlyAllIsPruned(points([run({ reason: "DISABLED", kept: 9, total: 9 })]))).toBe(false);
    expect(nearlyAllIsPruned([])).toBe(false);
  });

  it("has the phases in the order of a run", () => {
    expect(phasesOf([run({}), run({ seconds: { other: 1, prelaunch: 1 } })])).toEqual([
      "local task",
      "prelaunch",
      "map join",
      "other",
    ]);
  });
});

describe("filtered", () => {
  const task = (task_id: string, trend: TaskSummary["trend"]): TaskSummary => ({
    dag_id: "Sales",
    task_id,
    group: null,
    last: run({}),
    runs: 1,
    pruned_partitions: 0,
    pruned_bytes: null,
    estimated: false,
    read_bytes: null,
    trend,
  });
  const tasks = [task("a", "pruned"), task("b", "worse"), task("c", "nothing pruned")];
  const ids = (found: TaskSummary[]) => found.map((each) => each.task_id);

  it("takes names and trends", () => {
    expect(ids(filtered(tasks, "", new Set()))).toEqual(["a", "b", "c"]);
    expect(ids(filtered(tasks, "sales.B", new Set()))).toEqual(["b"]);
    expect(ids(filtered(tasks, "", new Set(["worse", "nothing pruned"] as const)))).toEqual(["b", "c"]);
  });
});

describe("columns", () => {
  const columns: Column<number | null>[] = [
    { label: "value", cell: (row) => row },
    { label: "unknown", cell: () => null },
  ];

  it("are left out if no row knows them", () => {
    expect(knownColumns(columns, [null, 0]).map(({ label }) => label)).toEqual(["value"]);
    expect(knownColumns(columns, [null])).toEqual([]);
  });
});
