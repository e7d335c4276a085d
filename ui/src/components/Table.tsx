import type { ReactNode } from "react";

import { Scrollable } from "./Scrollable";

interface Props {
  caption: string;
  /** shows the caption; otherwise only screen readers have it */
  captionShown?: boolean;
  /** each row becomes a block on narrow screens; its cells then need labels */
  stacking?: boolean;
  head: { label: string; numeric?: boolean }[];
  children: ReactNode;
}

/** A table that scrolls sideways by itself on narrow screens, or stacks its cells. */
export function Table({ caption, captionShown = false, stacking = false, head, children }: Props) {
  return (
    <Scrollable className={stacking ? "table-scroll stacking" : "table-scroll"} label={caption}>
      <table>
        <caption className={captionShown ? undefined : "hidden"}>{caption}</caption>
        <thead>
          <tr>
            {head.map(({ label, numeric }, index) => (
              <th key={index} scope="col" className={numeric ? "numeric" : undefined}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scrollable>
  );
}

interface CellProps {
  /** the column's name, which stacked cells show */
  label: string;
  className?: string;
  children: ReactNode;
}

export function Cell({ label, className, children }: CellProps) {
  return (
    <td data-label={label} className={className}>
      {children}
    </td>
  );
}

export function NumberCell({ label, children }: CellProps) {
  return (
    <Cell label={label} className="numeric">
      {children}
    </Cell>
  );
}
