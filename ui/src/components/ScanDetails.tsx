import type { ReactNode } from "react";

import type { Scan, Source } from "../api/types";
import { count } from "../format";
import { isPruned } from "../statement";
import { pathInWords, wayInWords } from "../words";
import { Code } from "./Scrollable";
import { Cell, NumberCell, Table } from "./Table";

/** How the scan was pruned: the keys, the path and the metastore filter. */
export function ScanDetails({ scan }: { scan: Scan }) {
  const facts: [string, ReactNode][] = [];
  if (scan.path !== null) facts.push(["Path", pathInWords(scan.path)]);
  if (scan.way !== null && isPruned(scan)) {
    facts.push(["Spark's lookup", wayInWords(scan.way)]);
  }
  if (scan.columns.length > 0) {
    facts.push(["Restricted columns", <Codes key="columns" values={scan.columns} />]);
  }
  return (
    <>
      {facts.length > 0 && (
        <dl className="facts">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {scan.filter !== null && (
        <details>
          <summary>Metastore filter</summary>
          <Code label={`Metastore filter of ${scan.table}`}>{scan.filter}</Code>
        </details>
      )}
      {scan.sources.length > 0 && <Sources scan={scan} />}
    </>
  );
}

function Codes({ values }: { values: string[] }) {
  return values.map((value, index) => (
    <span key={index}>
      {index > 0 && ", "}
      <code>{value}</code>
    </span>
  ));
}

function Sources({ scan }: { scan: Scan }) {
  return (
    <Table
      caption={`Small tables that prune ${scan.table} (${scan.scan})`}
      stacking
      head={[
        { label: "Small table" },
        { label: "Alias" },
        { label: "Keys", numeric: true },
        { label: "Key query" },
      ]}
    >
      {scan.sources.map((source, index) => (
        <SourceRow key={index} source={source} />
      ))}
    </Table>
  );
}

function SourceRow({ source }: { source: Source }) {
  return (
    <tr>
      <th scope="row">{source.name}</th>
      <Cell label="Alias">{source.aliases.join(", ")}</Cell>
      <NumberCell label="Keys">{source.keys === null ? "not read yet" : count(source.keys)}</NumberCell>
      <Cell label="Key query" className="query">
        <details>
          <summary>
            Show<span className="hidden"> the key query of {source.name}</span>
          </summary>
          <Code label={`Key query of ${source.name}`}>{source.sql}</Code>
        </details>
      </Cell>
    </tr>
  );
}
