import { Graph, layout } from "@dagrejs/dagre";

import { type GraphEdge, type GraphModel, nodeHeight } from "./graph";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const GAP = 28;
const PHONE = 700;

/**
 * Places the nodes; the upper left corner of each by its ID. Each connected part of the graph is
 * laid out alone. From left to right, the parts are put below one another; from top to bottom,
 * beside one another in rows that are at most `width` wide.
 */
export function place(model: GraphModel, direction: "LR" | "TB", width: number): Map<string, Box> {
  const placed = new Map<string, Box>();
  let [left, top, bottom] = [0, 0, 0];
  for (const part of connectedParts(model)) {
    const boxes = placePart(part, direction, width < PHONE ? 176 : 200);
    const partWidth = Math.max(...[...boxes.values()].map((box) => box.x + box.width));
    if (left > 0 && (direction === "LR" || left + partWidth > width)) {
      [left, top] = [0, bottom + GAP];
    }
    for (const [id, box] of boxes) {
      placed.set(id, { ...box, x: box.x + left, y: box.y + top });
      bottom = Math.max(bottom, box.y + top + box.height);
    }
    left += partWidth + GAP;
  }
  return placed;
}

function placePart(part: GraphModel, direction: "LR" | "TB", nodeWidth: number): Map<string, Box> {
  const graph = new Graph();
  graph.setGraph({ rankdir: direction, nodesep: 20, ranksep: 36 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of part.nodes) {
    graph.setNode(node.id, { width: nodeWidth, height: nodeHeight(node) });
  }
  for (const edge of part.edges) graph.setEdge(edge.from, edge.to);
  layout(graph);
  return new Map(
    part.nodes.map((node) => {
      const { x, y, width, height } = graph.node(node.id) as Box;
      return [node.id, { x: x - width / 2, y: y - height / 2, width, height }];
    }),
  );
}

/** The connected parts, in the order of their first nodes. */
export function connectedParts({ nodes, edges }: GraphModel): GraphModel[] {
  const groups = new Map(nodes.map((node) => [node.id, new Set([node.id])]));
  for (const { from, to } of edges) {
    const one = groups.get(from);
    const other = groups.get(to);
    if (one === undefined || other === undefined || one === other) continue;
    for (const id of other) {
      one.add(id);
      groups.set(id, one);
    }
  }
  const inGroup = (group: Set<string>, edge: GraphEdge) => group.has(edge.from);
  return [...new Set(groups.values())].map((group) => ({
    nodes: nodes.filter((node) => group.has(node.id)),
    edges: edges.filter((edge) => inGroup(group, edge)),
  }));
}
