import { useMemo } from "react";

import type { Instance } from "../api/types";
import { graphOf } from "../graph";
import { PlanGraph } from "./PlanGraph";
import { Section } from "./Section";

/** The pruning and Hive's stages; nothing if no two things are connected and no stage is known. */
export function Plan({ instance }: { instance: Instance }) {
  const model = useMemo(() => graphOf(instance), [instance]);
  if (model.edges.length === 0 && instance.stages.length === 0) return null;
  return (
    <Section
      title="Plan"
      note={
        instance.stages.length > 0
          ? "The small tables, their keys, the scans that they prune, and the stages that Hive would run."
          : "The small tables, their keys and the scans that they prune."
      }
    >
      <PlanGraph model={model} />
    </Section>
  );
}
