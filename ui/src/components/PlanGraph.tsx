import {
  Handle,
  MarkerType,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type Edge,
  type Node,
  type NodeProps,
  type Viewport,
} from "@xyflow/react";
import { useLayoutEffect, useMemo, useRef, useState } from "react";

import { inWords, SHOWN_DETAILS, type GraphModel, type GraphNode } from "../graph";
import { place } from "../graphLayout";

type Shown = Node<{ node: GraphNode; across: boolean }, "box">;

function BoxNode({ data: { node, across } }: NodeProps<Shown>) {
  const more = node.details.length - SHOWN_DETAILS;
  return (
    <div className={`box box-${node.kind}`} title={[node.title, ...node.details].join("\n")}>
      <Handle type="target" position={across ? Position.Left : Position.Top} isConnectable={false} />
      <div className="box-label">{node.label}</div>
      <div className="box-title">{node.title}</div>
      {node.details.slice(0, SHOWN_DETAILS).map((detail, index) => (
        <div key={index} className="box-detail">
          {detail}
        </div>
      ))}
      {more > 0 && <div className="box-detail">and {more} more</div>}
      <Handle
        type="source"
        position={across ? Position.Right : Position.Bottom}
        isConnectable={false}
      />
    </div>
  );
}

const NODE_TYPES = { box: BoxNode };

/** The graph, and the same as a list. */
export function PlanGraph({ model }: { model: GraphModel }) {
  const [frame, width] = useWidth();
  const drawing = useMemo(() => fitting(model, width), [model, width]);
  const view = viewOf(drawing, width);
  return (
    <>
      <div ref={frame}>
        {width > 0 && (
          <ReactFlowProvider key={width}>
            <Zoom />
            <div className="graph" style={{ height: view.height }}>
              <Flow drawing={drawing} viewport={view.viewport} />
            </div>
          </ReactFlowProvider>
        )}
      </div>
      <details>
        <summary>The graph as text</summary>
        <ul className="plain">
          {inWords(model).map((line, index) => (
            <li key={index}>{line}</li>
          ))}
        </ul>
      </details>
    </>
  );
}

function Flow({ drawing, viewport }: { drawing: Drawing; viewport: Viewport }) {
  return (
    <ReactFlow
      aria-label="Graph of the plan. The list below has the same content."
      nodes={drawing.nodes}
      edges={drawing.edges}
      nodeTypes={NODE_TYPES}
      defaultViewport={viewport}
      minZoom={0.1}
      nodesDraggable={false}
      nodesConnectable={false}
      nodesFocusable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      disableKeyboardA11y
      zoomOnScroll={false}
      preventScrolling={false}
      proOptions={{ hideAttribution: true }}
    />
  );
}

/** The buttons are above the graph, where they cover no node. */
function Zoom() {
  const { zoomIn, zoomOut, fitView } = useReactFlow();
  return (
    <div className="zoom" role="group" aria-label="Size of the graph">
      <button type="button" onClick={() => void zoomOut()} aria-label="Smaller">
        −
      </button>
      <button type="button" onClick={() => void zoomIn()} aria-label="Larger">
        +
      </button>
      <button type="button" onClick={() => void fitView()}>
        Whole graph
      </button>
    </div>
  );
}

interface Drawing {
  nodes: Shown[];
  edges: Edge[];
  width: number;
  height: number;
}

function drawn(model: GraphModel, across: boolean, width: number): Drawing {
  const boxes = place(model, across ? "LR" : "TB", width);
  const nodes: Shown[] = model.nodes.map((node) => {
    const box = boxes.get(node.id) ?? { x: 0, y: 0, width: 0, height: 0 };
    return {
      id: node.id,
      type: "box",
      position: { x: box.x, y: box.y },
      width: box.width,
      height: box.height,
      data: { node, across },
    };
  });
  const edges: Edge[] = model.edges.map(({ from, to }) => ({
    id: JSON.stringify([from, to]),
    source: from,
    target: to,
    markerEnd: { type: MarkerType.ArrowClosed, color: "var(--edge)" },
  }));
  const all = [...boxes.values()];
  return {
    nodes,
    edges,
    width: Math.max(0, ...all.map((box) => box.x + box.width)),
    height: Math.max(0, ...all.map((box) => box.y + box.height)),
  };
}

const MARGIN = 16;
/** Below this zoom the text of a node is too small to read. */
const READABLE = 0.9;

function zoomOf(drawing: Drawing, width: number): number {
  return Math.min(1, (width - 2 * MARGIN) / Math.max(1, drawing.width));
}

/** From left to right if that is readable in this width, else from top to bottom. */
function fitting(model: GraphModel, width: number): Drawing {
  const across = drawn(model, true, width);
  if (zoomOf(across, width) >= READABLE) return across;
  return drawn(model, false, (width - 2 * MARGIN) / READABLE);
}

/** Fits the graph's width as long as its text stays readable; the rest is a matter of dragging. */
function viewOf(drawing: Drawing, width: number) {
  const zoom = Math.max(READABLE, zoomOf(drawing, width));
  const height = drawing.height * zoom + 2 * MARGIN;
  return { height, viewport: { x: MARGIN, y: MARGIN, zoom } };
}

function useWidth() {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [frame, width] as const;
}
