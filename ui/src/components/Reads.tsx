import type { KeyPredicate, TableRead } from "../api/types";
import { bytes, count, orUnknown } from "../format";
import { Cell, NumberCell, Table } from "./Table";

/** What Spark read of each table. */
export function Reads({ reads }: { reads: TableRead[] }) {
  return (
    <Table
      caption="What Spark read of each table"
      stacking
      head={[
        { label: "Table" },
        { label: "Partitions", numeric: true },
        { label: "Files", numeric: true },
        { label: "Bytes read", numeric: true },
        { label: "Size of the table", numeric: true },
      ]}
    >
      {reads.map((read, index) => (
        <tr key={index}>
          <th scope="row">{read.table}</th>
          <NumberCell label="Partitions">{orUnknown(read.partitions, count)}</NumberCell>
          <NumberCell label="Files">{orUnknown(read.files, count)}</NumberCell>
          <NumberCell label="Bytes read">{orUnknown(read.bytes, bytes)}</NumberCell>
          <NumberCell label="Size of the table">{orUnknown(read.total_bytes, bytes)}</NumberCell>
        </tr>
      ))}
    </Table>
  );
}

/** Keys that became conditions on data columns. */
export function KeyPredicates({ predicates }: { predicates: KeyPredicate[] }) {
  return (
    <Table
      caption="Keys on data columns"
      captionShown
      stacking
      head={[
        { label: "Table" },
        { label: "Alias" },
        { label: "Column" },
        { label: "Keys", numeric: true },
        { label: "Condition" },
      ]}
    >
      {predicates.map((predicate, index) => (
        <tr key={index}>
          <th scope="row">{predicate.table}</th>
          <Cell label="Alias">{predicate.alias}</Cell>
          <Cell label="Column">
            <code>{predicate.column}</code>
          </Cell>
          <NumberCell label="Keys">{count(predicate.keys)}</NumberCell>
          <Cell label="Condition">
            {predicate.range ? "range from the lowest to the highest key" : "list of keys"}
          </Cell>
        </tr>
      ))}
    </Table>
  );
}
