import type { Place, Scan } from "./api/types";

/** A part of the statement. `scans` has the numbers of the scans that it names, from 0. */
export interface Part {
  text: string;
  scans: number[];
}

export function isPruned(scan: Scan): boolean {
  return scan.reason === "PRUNED";
}

/** Whether the scan will be pruned by keys that are not read yet. */
export function isPlanned(scan: Scan): boolean {
  return isPruned(scan) && scan.kept === null;
}

/** Whether conditions restrict the scan, so that its table's own metadata finds the files. */
export function isRestricted(scan: Scan): boolean {
  return scan.reason === "RESTRICTED" || scan.reason === "OWN_CONDITION";
}

/** Whether the scan's name is the table's own name, so that it says nothing more. */
export function isNamedBy({ scan, table }: Pick<Scan, "scan" | "table">): boolean {
  return scan === table || table.endsWith(`.${scan}`);
}

/** Where the reference of a pruned scan starts, which tells its partition list from others. */
export function startOf({ reference }: Pick<Scan, "reference">): number {
  return reference === null ? -1 : reference[0];
}

interface Range {
  start: number;
  stop: number;
  scans: number[];
}

/**
 * Splits the statement at the places of the scans. Places count characters, and JavaScript's
 * strings count UTF-16 units. A place outside a cut statement is left out.
 */
export function parts(statement: string, scans: Pick<Scan, "place">[]): Part[] {
  const characters = Array.from(statement);
  const found: Part[] = [];
  let at = 0;
  for (const range of ranges(scans, characters.length)) {
    if (range.start > at) found.push({ text: slice(characters, at, range.start), scans: [] });
    found.push({ text: slice(characters, range.start, range.stop), scans: range.scans });
    at = range.stop;
  }
  if (at < characters.length) {
    found.push({ text: slice(characters, at, characters.length), scans: [] });
  }
  return found;
}

function slice(characters: string[], start: number, stop: number): string {
  return characters.slice(start, stop).join("");
}

/** The places in order; those that overlap, such as the tables of one view, become one. */
function ranges(scans: Pick<Scan, "place">[], length: number): Range[] {
  const placed = scans
    .map((scan, index) => ({ place: scan.place, index }))
    .filter((each): each is { place: Place; index: number } => isInside(each.place, length))
    .sort((a, b) => a.place.start - b.place.start || a.place.stop - b.place.stop);
  const merged: Range[] = [];
  for (const { place, index } of placed) {
    const last = merged.at(-1);
    if (last !== undefined && place.start < last.stop) {
      last.stop = Math.max(last.stop, place.stop);
      last.scans.push(index);
    } else {
      merged.push({ start: place.start, stop: place.stop, scans: [index] });
    }
  }
  return merged;
}

function isInside(place: Place | null, length: number): place is Place {
  return place !== null && place.start >= 0 && place.start < place.stop && place.stop <= length;
}
