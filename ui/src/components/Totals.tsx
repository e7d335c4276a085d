import type { Overview } from "../api/types";
import { bytes, count } from "../format";

/** What pruning left unread in the last days. */
export function Totals({ overview }: { overview: Overview }) {
  const figures: [string, string][] = [
    ["Partitions pruned", count(overview.spared_partitions)],
    ["Bytes pruned", overview.spared_bytes === null ? "not known" : bytes(overview.spared_bytes)],
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
