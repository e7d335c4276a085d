import { describe, expect, it } from "vitest";

import { parts } from "./statement";

const at = (start: number, stop: number) => ({ place: { start, stop, line: 1, column: start + 1 } });

describe("parts", () => {
  it("splits the statement at the scans", () => {
    expect(parts("FROM a JOIN b", [at(12, 13), at(5, 6)])).toEqual([
      { text: "FROM ", scans: [] },
      { text: "a", scans: [1] },
      { text: " JOIN ", scans: [] },
      { text: "b", scans: [0] },
    ]);
  });

  it("counts characters, not UTF-16 units", () => {
    expect(parts("'😀' a", [at(4, 5)]).at(-1)).toEqual({ text: "a", scans: [0] });
  });

  it("joins scans of the same or an overlapping place", () => {
    expect(parts("FROM view", [at(5, 9), at(5, 9), at(6, 8)])).toEqual([
      { text: "FROM ", scans: [] },
      { text: "view", scans: [0, 1, 2] },
    ]);
  });

  it("leaves out what a cut statement does not have", () => {
    expect(parts("FROM", [at(5, 9), at(2, 6), at(-1, 2), at(2, 2), { place: null }])).toEqual([
      { text: "FROM", scans: [] },
    ]);
    expect(parts("", [])).toEqual([]);
  });

  it("loses no character", () => {
    const text = "SELECT * FROM a, b /* ü😀 */ JOIN c";
    const found = parts(text, [at(14, 15), at(17, 18), at(30, 33)]);
    expect(found.map((part) => part.text).join("")).toBe(text);
  });
});
