import type { KeyPredicate, TableRead } from "../api/types";
import { bytes, count, ifKnown } from "../format";
import { DataTable } from "./DataTable";
import { Cell, NumberCell, Table } from "./Table";

/** Spark counts the partitions of partitioned tables only, and the files of all that it counts. */
function partitions({ partitions, files }: TableRead): string | null {
  return partitions === null && files !== null ? "–" : ifKnown(partitions, count);
}

/** What Spark read of each table. */
export function Reads({ reads }: { reads: TableRead[] }) {
  return (
    <DataTable
      caption="What Spark read of each table"
      stacking
      rows={reads}
      keyOf={(_, index) => index}
      heading={{ label: "Table", cell: (read) => read.table }}
      columns={[
        { label: "Partitions", numeric: true, cell: partitions },
        { label: "Files", numeric: true, cell: (read) => ifKnown(read.files, count) },
        { label: "Bytes read", numeric: true, cell: (read) => ifKnown(read.bytes, bytes) },
        {
          label: "Size of the table",
          numeric: true,
          cell: (read) => ifKnown(read.total_bytes, bytes),
        },
      ]}
    />
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
          <Cell label="Alias">{predicate.scan}</Cell>
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
