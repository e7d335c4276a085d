import { Fragment } from "react";

import type { Scan, Statement } from "../api/types";
import { count, counted } from "../format";
import { isPlanned, isPruned, parts, type Part } from "../statement";
import { Message } from "./Message";
import { Code } from "./Scrollable";

interface Props {
  statement: Statement;
  scans: Scan[];
  hasRun: boolean;
  stopped: boolean;
}

/** The user's statement with its scans marked, beside the statement that Spark ran. */
export function Statements({ statement, scans, hasRun, stopped }: Props) {
  return (
    <>
      {statement.cut && (
        <Message kind="info">
          At least one text is cut. Airflow stores as many characters as{" "}
          <code>[core] max_templated_field_length</code> allows.
        </Message>
      )}
      <div className="columns">
        <div>
          <h3>In the task</h3>
          {statement.user === null ? (
            <p className="muted">The statement is not stored.</p>
          ) : (
            <Marked statement={statement.user} scans={scans} />
          )}
        </div>
        {hasRun && (
          <div>
            <h3>What Spark ran</h3>
            {statement.ran === null ? (
              <p className="muted">
                {stopped
                  ? "Spark has not run the statement."
                  : "The statement that Spark ran is not stored."}
              </p>
            ) : (
              <Code label="The statement that Spark ran">{statement.ran}</Code>
            )}
          </div>
        )}
      </div>
    </>
  );
}

function Marked({ statement, scans }: { statement: string; scans: Scan[] }) {
  return (
    <>
      <Code label="The statement of the task">
        {parts(statement, scans).map((part, index) => (
          <Fragment key={index}>
            {part.scans.length === 0 ? part.text : <Mark part={part} scans={scans} />}
          </Fragment>
        ))}
      </Code>
      {scans.length > 0 && (
        <ul className="notes">
          {scans.map((scan, index) => (
            <li key={index}>
              <a href={`#scan-${index + 1}`} className="number" aria-label={`Scan ${index + 1}`}>
                {index + 1}
              </a>
              <span className={isPruned(scan) ? "mark mark-pruned" : "mark mark-whole"}>
                {isPlanned(scan) ? "will be pruned" : isPruned(scan) ? "pruned" : "not pruned"}
              </span>{" "}
              {note(scan)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Mark({ part, scans }: { part: Part; scans: Scan[] }) {
  const found = part.scans.flatMap((index) => scans[index] ?? []);
  const whole = found.some((scan) => !isPruned(scan));
  return (
    <mark className={whole ? "mark mark-whole" : "mark mark-pruned"} title={found.map(note).join("\n")}>
      {part.text}
      <sup>{part.scans.map((index) => index + 1).join(",")}</sup>
    </mark>
  );
}

function note(scan: Scan): string {
  const where =
    scan.place === null ? "not in this text" : `line ${scan.place.line}, column ${scan.place.column}`;
  const kept =
    scan.kept === null ? "" : `${count(scan.kept)} of ${counted(scan.total ?? 0, "partition")}, `;
  return `${scan.table} (${where}): ${kept}${scan.reason}, ${scan.sentence}`;
}
