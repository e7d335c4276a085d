import {
  Controls,
  Handle,
  MarkerType,
  Position,
  ReactFlow,
  type Edge,
  type Node,
  type NodeProps,
  type Viewport,
} from "@xyflow/react";
import { useLayoutEffect, useMemo, useRef, useState } from "react";

import { inWords, SHOWN_DETAILS, type GraphModel, type GraphNode } from "../graph";
import { place } from "../graphLayout";
import { useNarrow } from "../useNarrow";

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
  const narrow = useNarrow();
  const [frame, width] = useWidth();
  const drawing = useMemo(() => drawn(model, !narrow), [model, narrow]);
  const view = viewOf(drawing, width, narrow);
  return (
    <>
      <div ref={frame} className="graph" style={{ height: view.height }}>
        {width > 0 && <Flow key={`${narrow} ${width}`} drawing={drawing} viewport={view.viewport} />}
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
    >
      <Controls showInteractive={false} position="top-right" orientation="horizontal" />
    </ReactFlow>
  );
}

interface Drawing {
  nodes: Shown[];
  edges: Edge[];
  width: number;
  height: number;
}

function drawn(model: GraphModel, across: boolean): Drawing {
  const boxes = place(model, across ? "LR" : "TB");
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
const SMALLEST = 0.6;
/** On phones, the controls have a row of their own. */
const CONTROLS = 36;

/** Fits the graph's width as long as its text stays readable; the rest is a matter of dragging. */
function viewOf(drawing: Drawing, width: number, narrow: boolean) {
  const fitting = (width - 2 * MARGIN) / Math.max(1, drawing.width);
  const zoom = Math.min(1, Math.max(SMALLEST, fitting));
  const most = narrow ? 440 : 640;
  const top = MARGIN + (narrow ? CONTROLS : 0);
  const height = Math.min(most, Math.max(140, drawing.height * zoom + top + MARGIN));
  return { height, viewport: { x: MARGIN, y: top, zoom } };
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
