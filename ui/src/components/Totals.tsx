import type { ReactNode } from "react";

import type { Overview } from "../api/types";
import { count } from "../format";
import { Estimate } from "./Estimate";

/** What pruning left unread in the last days. */
export function Totals({ overview }: { overview: Overview }) {
  const figures: [string, ReactNode][] = [
    ["Partitions pruned", count(overview.pruned_partitions)],
    ...(overview.pruned_bytes === null ? [] : [bytesPruned(overview.pruned_bytes, overview)]),
    ["Runs", count(overview.runs)],
    ["Tasks", count(overview.tasks.length)],
  ];
  return (
    <section className="section" aria-labelledby="totals">
      <h2 id="totals">Last {overview.days} days</h2>
      <dl className="totals">
        {figures.map(([name, value]) => (
          <div key={name} className="card">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function bytesPruned(bytes: number, { estimated }: Overview): [string, ReactNode] {
  return ["Bytes pruned", <Estimate key="bytes" bytes={bytes} estimated={estimated} />];
}
