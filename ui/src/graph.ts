import type { Instance, Scan } from "./api/types";
import { count, counted } from "./format";
import { isNamedBy, isPlanned, isPruned, isRestricted } from "./statement";

export type NodeKind = "table" | "keys" | "pruned" | "whole" | "stage";

export interface GraphNode {
  id: string;
  kind: NodeKind;
  title: string;
  /** what the node is, such as "small table" or "MapReduce" */
  label: string;
  details: string[];
}

export interface GraphEdge {
  from: string;
  to: string;
}

export interface GraphModel {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** Small tables, their keys, the scans that they prune, and Hive's stages that read these. */
export function graphOf(instance: Pick<Instance, "scans" | "stages">): GraphModel {
  const nodes = new Map<string, GraphNode>();
  const edges = new Map<string, GraphEdge>();
  const connect = (from: string, to: string) => edges.set(JSON.stringify([from, to]), { from, to });

  instance.scans.forEach((scan, index) => {
    const big = scanNode(scan, index);
    nodes.set(big.id, big);
    for (const source of scan.sources) {
      const table = `table ${source.name}`;
      const keys = `keys ${JSON.stringify([source.name, source.sql])}`;
      const aliases = source.aliases.filter((alias) => alias !== source.name);
      nodes.set(table, {
        id: table,
        kind: "table",
        title: source.name,
        label: "small table",
        details: aliases.length > 0 ? [`alias ${aliases.join(", ")}`] : [],
      });
      nodes.set(keys, {
        id: keys,
        kind: "keys",
        title: source.keys === null ? "keys" : counted(source.keys, "key"),
        label: "local task",
        details: [],
      });
      connect(table, keys);
      connect(keys, big.id);
    }
  });

  const known = new Set(instance.stages.map((stage) => stage.id));
  for (const stage of instance.stages) {
    const id = `stage ${stage.id}`;
    nodes.set(id, {
      id,
      kind: "stage",
      title: stage.id,
      label: stage.kind,
      details: stage.details,
    });
    instance.scans.forEach((_, index) => {
      if (stage.scans.includes(index)) connect(`scan ${index}`, id);
    });
    for (const before of stage.depends_on) {
      if (known.has(before)) connect(`stage ${before}`, id);
    }
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

function scanNode(scan: Scan, index: number): GraphNode {
  const pruned = isPruned(scan) || isRestricted(scan);
  return {
    id: `scan ${index}`,
    kind: pruned ? "pruned" : "whole",
    title: scan.table,
    label: `scan ${index + 1}${isNamedBy(scan) ? "" : `, alias ${scan.scan}`}`,
    details: [scanInWords(scan)],
  };
}

function scanInWords(scan: Scan): string {
  if (isRestricted(scan)) {
    return scan.files === null
      ? `files by condition: ${scan.reason}`
      : `${count(scan.files)} of ${counted(scan.total_files ?? scan.files, "file")}`;
  }
  if (!isPruned(scan)) return `all partitions: ${scan.reason}`;
  return isPlanned(scan)
    ? "the partitions of these keys"
    : `${count(scan.kept ?? 0)} of ${counted(scan.total ?? 0, "partition")}`;
}

/** The details that a node shows; the text below the graph has all of them. */
export const SHOWN_DETAILS = 4;
const HEAD = 50;
const LINE = 18;

export function nodeHeight(node: GraphNode): number {
  const shown = Math.min(node.details.length, SHOWN_DETAILS);
  const more = node.details.length > SHOWN_DETAILS ? 1 : 0;
  return HEAD + (shown + more) * LINE + (shown > 0 ? 6 : 0);
}

/** The graph in sentences, for readers that do not see it. */
export function inWords(model: GraphModel): string[] {
  const titles = new Map(model.nodes.map((node) => [node.id, `${node.title} (${node.label})`]));
  return model.nodes.map((node) => {
    const before = model.edges.filter((edge) => edge.to === node.id);
    const after = before.map((edge) => titles.get(edge.from)).join(", ");
    const details = node.details.length > 0 ? `: ${node.details.join("; ")}` : "";
    return `${titles.get(node.id)}${details}${after === "" ? "" : `. After ${after}`}`;
  });
}
