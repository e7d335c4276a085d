import type { Overview } from "../api/types";
import { bytes, count } from "../format";

/** What pruning left unread in the last days. */
export function Totals({ overview }: { overview: Overview }) {
  const figures: [string, string][] = [
    ["Partitions pruned", count(overview.pruned_partitions)],
    ["Bytes pruned", overview.pruned_bytes === null ? "not known" : bytes(overview.pruned_bytes)],
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
