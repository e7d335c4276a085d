import type { ReactNode } from "react";

import type { EliminatedJoin, Instance } from "../api/types";
import { counted, seconds } from "../format";
import { isNamedBy } from "../statement";
import { Message } from "./Message";

/** Facts that only some runs have. */
export function RunNotes({ instance }: { instance: Instance }) {
  const notes: ReactNode[] = [];
  if (instance.eliminated.length > 0) {
    notes.push(
      <>
        The run left out the join with {instance.eliminated.map(inWords).join(", ")}, because the keys already
        filter the rows in the same way.
      </>,
    );
  }
  if (instance.vanished > 0) {
    notes.push(
      `${counted(instance.vanished, "partition")} of the list ${was(instance.vanished)} removed before the map join started.`,
    );
  }
  if (instance.appeared > 0) {
    notes.push(
      `${counted(instance.appeared, "partition")} ${was(instance.appeared)} added before the map join started, and read.`,
    );
  }
  const ways = instance.index_trial === null ? [] : timesOf(instance.index_trial);
  if (ways.length > 1) {
    notes.push(
      `The times of the task's last runs: ${ways.join(", ")}. ` +
        "Its runs go the quickest way, except about every tenth, which tries another way.",
    );
  }
  if (notes.length === 0) return null;
  return (
    <Message kind="info">
      <ul className="plain">
        {notes.map((note, index) => (
          <li key={index}>{note}</li>
        ))}
      </ul>
    </Message>
  );
}

function timesOf({ used, left_out: leftOut, untouched }: NonNullable<Instance["index_trial"]>): string[] {
  const ways: [string, number | null][] = [
    ["with key indexes", used],
    ["without key indexes", leftOut],
    ["the statement as it is", untouched],
  ];
  return ways.flatMap(([way, took]) => (took === null ? [] : [`${way} ${seconds(took)}`]));
}

function inWords(join: EliminatedJoin): string {
  return isNamedBy(join) ? join.table : `${join.table} (${join.scan})`;
}

function was(number: number): string {
  return number === 1 ? "was" : "were";
}
