import { apiPath, type InstanceId } from "../router";
import { getJson } from "./client";
import type { Partition, PartitionPage } from "./types";

/**
 * Reads the partition lists of one run: from the API, or from the data in the file. `scan` is the
 * start of the scan's reference.
 */
export interface PartitionReader {
  page(
    scan: number,
    search: string,
    offset: number,
    limit: number,
    signal: AbortSignal,
  ): Promise<PartitionPage>;
  /** An address for each format. The caller calls `release` when it no longer needs them. */
  downloads(scan: number): Downloads;
}

export interface Downloads {
  csv: string;
  json: string;
  release(): void;
}

export function fromApi(base: string, id: InstanceId): PartitionReader {
  return {
    page: (scan, search, offset, limit, signal) =>
      getJson<PartitionPage>(apiPath.partitions(base, id, { scan, search, offset, limit }), signal),
    downloads: (scan) => ({
      csv: apiPath.download(base, id, scan, "csv"),
      json: apiPath.download(base, id, scan, "json"),
      release: () => undefined,
    }),
  };
}

export function fromFile(lists: PartitionPage[]): PartitionReader {
  const listOf = (scan: number) => lists.find((list) => list.reference?.[0] === scan);
  return {
    page: (scan, search, offset, limit) => {
      const list = listOf(scan);
      if (list === undefined) {
        return Promise.reject(new Error("This file does not contain the list of this scan."));
      }
      return Promise.resolve(select(list, search, offset, limit));
    },
    downloads: (scan) => {
      const list = listOf(scan);
      const csv = blob(list === undefined ? "" : toCsv(list), "text/csv");
      const json = blob(JSON.stringify(list?.partitions ?? [], null, 1), "application/json");
      return {
        csv,
        json,
        release: () => {
          URL.revokeObjectURL(csv);
          URL.revokeObjectURL(json);
        },
      };
    },
  };
}

/** One page of the partitions whose name contains the search text. */
export function select(
  list: PartitionPage,
  search: string,
  offset: number,
  limit: number,
): PartitionPage {
  const wanted = search.trim().toLowerCase();
  const found =
    wanted === "" ? list.partitions : list.partitions.filter((each) => matches(each, wanted));
  return {
    ...list,
    found: wanted === "" ? list.total : found.length,
    partitions: found.slice(offset, offset + limit),
  };
}

function matches(partition: Partition, wanted: string): boolean {
  return [partition.name, ...partition.values].some((text) =>
    (text ?? "null").toLowerCase().includes(wanted),
  );
}

export function toCsv(list: PartitionPage): string {
  const header = [...list.columns.map(safe), "partition", "location", "rows", "bytes"];
  const rows = list.partitions.map((each) => [
    ...each.values.map(safe),
    safe(each.name),
    safe(each.location),
    each.rows,
    each.bytes,
  ]);
  return [header, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** The text, or nothing; a spreadsheet would run a text that begins like a formula. */
function safe(value: string | null): string {
  const text = value ?? "";
  const isFormula = /^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text);
  return isFormula ? `'${text}` : text;
}

function field(value: string | number | null): string {
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function blob(text: string, type: string): string {
  return URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
}
