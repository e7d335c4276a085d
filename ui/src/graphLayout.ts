import { Graph, layout } from "@dagrejs/dagre";

import { type GraphEdge, type GraphModel, nodeHeight } from "./graph";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export const NODE_WIDTH = 232;
const GAP = 28;

/**
 * Places the nodes; the upper left corner of each by its ID. Each connected part of the graph is
 * laid out alone, and the parts are put below one another.
 */
export function place(model: GraphModel, direction: "LR" | "TB"): Map<string, Box> {
  const placed = new Map<string, Box>();
  let top = 0;
  for (const part of connectedParts(model)) {
    let bottom = top;
    for (const [id, box] of placePart(part, direction)) {
      placed.set(id, { ...box, y: box.y + top });
      bottom = Math.max(bottom, box.y + top + box.height);
    }
    top = bottom + GAP;
  }
  return placed;
}

function placePart(part: GraphModel, direction: "LR" | "TB"): Map<string, Box> {
  const graph = new Graph();
  graph.setGraph({ rankdir: direction, nodesep: 20, ranksep: 44 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of part.nodes) {
    graph.setNode(node.id, { width: NODE_WIDTH, height: nodeHeight(node) });
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
