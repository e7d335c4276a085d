// Codes of the API in words.

const PATHS: Record<string, string> = {
  fast: "fast: compares keys with partition columns",
  skeleton: "skeleton: Spark evaluates the condition on the partition names",
  static: "static: partition names and literals decide",
};

const WAYS: Record<string, string> = {
  filter: "one metastore filter",
  names: "names of partitions",
  range: "all partitions in the range of the values",
  whole: "all partitions of the table",
};

const TRENDS: Record<string, string> = {
  pruned: "pruned",
  worse: "got worse",
  "nothing pruned": "nothing pruned",
};

export function pathInWords(path: string): string {
  return PATHS[path] ?? path;
}

export function wayInWords(way: string): string {
  return WAYS[way] ?? way;
}

export function trendInWords(trend: string): string {
  return TRENDS[trend] ?? trend;
}
