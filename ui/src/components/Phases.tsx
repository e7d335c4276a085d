import type { Phase, Work } from "../api/types";
import { count, seconds } from "../format";
import { PHASES } from "../history";
import { DataTable, type Column } from "./DataTable";

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
      <DataTable
        caption="Seconds and work of each phase"
        stacking
        rows={phases}
        keyOf={(_, index) => index}
        heading={{
          label: "Phase",
          cell: (phase) => (
            <>
              <span className="swatch" style={{ background: phaseColour(phase.name) }} />
              {phase.name}
            </>
          ),
        }}
        columns={[
          { label: "Time", numeric: true, cell: (phase) => seconds(phase.seconds) },
          work("Metastore calls", (counted) => counted.metastore_calls),
          work("Partitions fetched", (counted) => counted.partitions_fetched),
          work("Files listed", (counted) => counted.files_listed),
        ]}
      />
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

function work(label: string, of: (counted: Work) => number): Column<Phase> {
  const cell = (phase: Phase) => (phase.work === null ? null : count(of(phase.work)));
  return { label, numeric: true, cell };
}
