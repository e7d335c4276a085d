import { describe, expect, it } from "vitest";

import type { Scan, Stage } from "./api/types";
import { graphOf, inWords, type GraphModel } from "./graph";
import { connectedParts, place } from "./graphLayout";

const SOURCE = { name: "days", aliases: ["d"], sql: "SELECT 1", keys: 30 };

function scan(change: Partial<Scan>): Scan {
  return {
    scan: "s",
    alias: "s",
    table: "sales",
    reference: [14, 19],
    reason: "PRUNED",
    sentence: "",
    advice: null,
    path: "fast",
    kept: 30,
    total: 1824,
    files: null,
    total_files: null,
    way: "filter",
    columns: ["ds"],
    filter: null,
    sources: [SOURCE],
    indexes: [],
    place: null,
    ...change,
  };
}

const STAGES: Stage[] = [
  { id: "Stage-4", kind: "LocalWork", depends_on: [], scans: [], details: [] },
  { id: "Stage-3", kind: "MapReduce", depends_on: ["Stage-4", "Stage-9"], scans: [], details: ["MapJoin s, d"] },
];

function edgesOf(model: GraphModel): string[] {
  return model.edges.map(({ from, to }) => `${from.split(" ")[0]} > ${to}`);
}

describe("graphOf", () => {
  it("leads from small tables by keys to scans, and along the stages", () => {
    const model = graphOf({ scans: [scan({})], stages: STAGES });
    expect(model.nodes.map((node) => node.kind)).toEqual(["pruned", "table", "keys", "stage", "stage"]);
    expect(edgesOf(model)).toEqual([
      `table > keys ${JSON.stringify(["days", "SELECT 1"])}`,
      "keys > scan 0",
      "stage > stage Stage-3",
    ]);
  });

  it("shows keys once if two scans use them", () => {
    const model = graphOf({ scans: [scan({}), scan({ alias: "s2" })], stages: [] });
    expect(model.nodes.filter((node) => node.kind === "keys")).toHaveLength(1);
    expect(model.edges).toHaveLength(3);
  });

  it("gives the reason of a scan that is not pruned", () => {
    const files = scan({ kept: null, total: null, files: 5, total_files: 1000, reason: "RESTRICTED", sources: [] });
    const restricted = graphOf({ scans: [files], stages: [] }).nodes.at(-1);
    expect([restricted?.kind, restricted?.details]).toEqual(["pruned", ["5 of 1,000 files"]]);
    const whole = scan({ kept: null, total: null, reason: "PRESERVED_SIDE", sources: [] });
    const [node] = graphOf({ scans: [whole], stages: [] }).nodes;
    expect(node).toMatchObject({ kind: "whole", details: ["all partitions: PRESERVED_SIDE"] });
  });

  it("is also a text", () => {
    const lines = inWords(graphOf({ scans: [], stages: STAGES }));
    expect(lines).toEqual([
      "Stage-4 (LocalWork)",
      "Stage-3 (MapReduce): MapJoin s, d. After Stage-4 (LocalWork)",
    ]);
  });
});

describe("place", () => {
  it("puts no two nodes on one another, and each after those before it", () => {
    const model = graphOf({ scans: [scan({}), scan({ alias: "s2" })], stages: STAGES });
    const boxes = place(model, "LR", 1400);
    const all = [...boxes.values()];
    for (const [index, a] of all.entries()) {
      for (const b of all.slice(index + 1)) {
        const apart =
          a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        expect(apart).toBe(true);
      }
    }
    for (const { from, to } of model.edges) {
      expect(boxes.get(from)?.x).toBeLessThan(boxes.get(to)?.x ?? 0);
    }
  });

  it("puts parts that are not connected below or beside one another", () => {
    const model = graphOf({ scans: [scan({})], stages: STAGES });
    expect(connectedParts(model).map((part) => [part.nodes.length, part.edges.length])).toEqual([
      [3, 2],
      [2, 1],
    ]);
    const boxes = place(model, "TB", 300);
    expect(boxes.get("stage Stage-4")?.y).toBeGreaterThan(boxes.get("scan 0")?.y ?? 0);
    const beside = place(model, "TB", 900);
    expect(beside.get("stage Stage-4")?.x).toBeGreaterThan(beside.get("scan 0")?.x ?? 0);
    expect(beside.get("stage Stage-4")?.y).toBe(0);
  });

  it("leads from a scan to the stages that read it", () => {
    const stages = STAGES.map((stage) => ({ ...stage, scans: [0] }));
    const { edges } = graphOf({ scans: [scan({}), scan({ scan: "s (line 2)" })], stages });
    expect(edges).toContainEqual({ from: "scan 0", to: "stage Stage-3" });
    expect(edges).not.toContainEqual({ from: "scan 1", to: "stage Stage-3" });
  });

  it("survives a circle", () => {
    const stages: Stage[] = [
      { id: "A", kind: "Move", depends_on: ["B"], scans: [], details: [] },
      { id: "B", kind: "Move", depends_on: ["A", "B"], scans: [], details: [] },
    ];
    expect(place(graphOf({ scans: [], stages }), "TB", 300).size).toBe(2);
  });
});
