import type { Phase } from "../api/types";
import { count, seconds } from "../format";
import { PHASES } from "../history";
import { NumberCell, Table } from "./Table";

/** The colour of a phase, by its usual place in a run. */
export function phaseColour(name: string): string {
  return `var(--phase-${phaseNumber(name)})`;
}

function phaseNumber(name: string): number {
  const known = PHASES.indexOf(name);
  return known < 0 ? 4 : known + 1;
}

/** The seconds of each phase as one bar, and its work as a table. */
export function Phases({ phases }: { phases: Phase[] }) {
  return (
    <>
      <Stack phases={phases} />
      <Table
        caption="Seconds and work of each phase"
        stacking
        head={[
          { label: "Phase" },
          { label: "Time", numeric: true },
          { label: "Metastore calls", numeric: true },
          { label: "Partitions fetched", numeric: true },
          { label: "Files listed", numeric: true },
        ]}
      >
        {phases.map((phase, index) => (
          <tr key={index}>
            <th scope="row">
              <span className="swatch" style={{ background: phaseColour(phase.name) }} />
              {phase.name}
            </th>
            <NumberCell label="Time">{seconds(phase.seconds)}</NumberCell>
            <NumberCell label="Metastore calls">{known(phase.work?.metastore_calls)}</NumberCell>
            <NumberCell label="Partitions fetched">
              {known(phase.work?.partitions_fetched)}
            </NumberCell>
            <NumberCell label="Files listed">{known(phase.work?.files_listed)}</NumberCell>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** A segment shows its seconds if it is wide enough; the table has all of them. */
function Stack({ phases }: { phases: Phase[] }) {
  const all = phases.reduce((sum, phase) => sum + phase.seconds, 0);
  return (
    <div className="stack" aria-hidden="true">
      {phases.map((phase, index) => {
        const part = all > 0 ? phase.seconds / all : 1 / phases.length;
        const number = phaseNumber(phase.name);
        return (
          <span
            key={index}
            title={`${phase.name}: ${seconds(phase.seconds)}`}
            style={{
              flexGrow: part,
              background: `var(--phase-${number})`,
              color: `var(--phase-${number}-fg)`,
            }}
          >
            {part > 0.2 && seconds(phase.seconds)}
          </span>
        );
      })}
    </div>
  );
}

function known(value: number | undefined): string {
  return value === undefined ? "not counted" : count(value);
}
