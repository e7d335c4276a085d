import type { ReactNode } from "react";

import { Cell, Table } from "./Table";

export interface Column<T> {
  label: string;
  numeric?: boolean;
  className?: string;
  /** null if the row does not know the value; a column that no row knows is left out */
  cell: (row: T) => ReactNode;
}

interface Props<T> {
  caption: string;
  stacking?: boolean;
  rows: T[];
  keyOf: (row: T, index: number) => string | number;
  /** the column whose cells name their rows */
  heading?: Omit<Column<T>, "numeric">;
  columns: Column<T>[];
  rowClass?: (row: T) => string | undefined;
}

/** A table of rows, without the columns that no row knows. */
export function DataTable<T>(props: Props<T>) {
  const { caption, stacking = false, rows, keyOf, heading, rowClass } = props;
  const columns = knownColumns(props.columns, rows);
  return (
    <Table
      caption={caption}
      stacking={stacking}
      head={[...(heading === undefined ? [] : [heading]), ...columns]}
    >
      {rows.map((row, index) => (
        <tr key={keyOf(row, index)} className={rowClass?.(row)}>
          {heading !== undefined && <th scope="row">{heading.cell(row)}</th>}
          {columns.map(({ label, numeric, className, cell }) => (
            <Cell key={label} label={label} className={numeric ? "numeric" : className}>
              {cell(row) ?? <span className="muted">not known</span>}
            </Cell>
          ))}
        </tr>
      ))}
    </Table>
  );
}

export function knownColumns<T>(columns: Column<T>[], rows: T[]): Column<T>[] {
  return columns.filter(({ cell }) => rows.some((row) => cell(row) !== null));
}
