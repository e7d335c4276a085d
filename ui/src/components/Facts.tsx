import type { ReactNode } from "react";

/** Names and values in one block; values that are null or false are left out. */
export function Facts({ facts }: { facts: [name: string, value: ReactNode][] }) {
  const shown = facts.filter(([, value]) => value !== null && value !== false);
  return (
    <dl className="facts facts-wide">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
