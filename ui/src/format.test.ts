import { describe, expect, it } from "vitest";

import { bytes, count, counted, estimatedBytes, localTime, prunedPercent, seconds } from "./format";

describe("numbers", () => {
  it("has separators and plurals", () => {
    expect(count(1824)).toBe("1,824");
    expect(counted(1, "key")).toBe("1 key");
    expect(counted(0, "key")).toBe("0 keys");
  });

  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.0 kB"],
    [12_400_000, "12.4 MB"],
    [999_960, "1.0 MB"],
    [123_456_789, "123 MB"],
    [40e9, "40.0 GB"],
    [7e18, "7.0 EB"],
  ])("writes %d bytes as %s", (value, text) => {
    expect(bytes(value)).toBe(text);
  });

  it.each([
    [0, "0.00 s"],
    [0.001, "< 0.01 s"],
    [0.351, "0.35 s"],
    [0.999, "1.0 s"],
    [3.21, "3.2 s"],
    [59.96, "1 min"],
    [125, "2 min 5 s"],
    [3599.6, "1 h"],
    [3720, "1 h 2 min"],
  ])("writes %d seconds as %s", (value, text) => {
    expect(seconds(value)).toBe(text);
  });

  it.each([
    [30, 1824, "98.4 %"],
    [1, 100_000, "99.9 %"],
    [99_999, 100_000, "0.1 %"],
    [0, 7, "100 %"],
    [7, 7, "0 %"],
    [0, 0, "0 %"],
  ])("says that %d of %d kept are %s pruned", (kept, total, text) => {
    expect(prunedPercent(kept, total)).toBe(text);
  });
});

it("marks estimates", () => {
  expect([estimatedBytes(1000, true), estimatedBytes(1000, false)]).toEqual(["≈ 1.0 kB", "1.0 kB"]);
});

describe("times", () => {
  it("are in the viewer's zone", () => {
    const iso = new Date(2026, 10, 4, 8, 5, 9).toISOString();
    expect(localTime(iso)).toBe("2026-11-04 08:05:09");
  });

  it("stay as they are if they are no times", () => {
    expect(localTime("soon")).toBe("soon");
  });
});
