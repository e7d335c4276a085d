import type { Hop, IndexUse, Scan, TableRead } from "../api/types";
import { bytes, count, counted, prunedPercent } from "../format";
import { isNamedBy, isPlanned, isPruned, isRestricted } from "../statement";
import { Advice } from "./Advice";
import { KeptBar } from "./KeptBar";
import { ScanDetails } from "./ScanDetails";

interface Props {
  scans: Scan[];
  reads: TableRead[];
}

/** All scans of partitioned tables, each with a bar and its details. */
export function ScanList({ scans, reads }: Props) {
  return (
    <ol className="scans">
      {scans.map((scan, index) => (
        <li key={index} id={`scan-${index + 1}`} className="card scan">
          <h3>
            <span className="number">{index + 1}</span>
            <span>
              {scan.table}
              {!isNamedBy(scan) && <span className="muted"> alias {scan.scan}</span>}
            </span>
          </h3>
          {!isPlanned(scan) && (
            <KeptBar
              kept={hopOf(scan)?.hop?.files ?? scan.kept ?? scan.files}
              total={scan.total ?? scan.total_files ?? hopOf(scan)?.total_files ?? null}
            />
          )}
          <Outcome scan={scan} read={readOf(scan, scans, reads)} />
          {scan.indexes.map((use) => (
            <p key={`${use.column} ${use.hop?.source ?? ""}`} className="muted">
              {indexInWords(use)}
            </p>
          ))}
          <ScanDetails scan={scan} />
        </li>
      ))}
    </ol>
  );
}

function Outcome({ scan, read }: { scan: Scan; read: TableRead | null }) {
  return (
    <p className="outcome">
      {isPlanned(scan) ? (
        <>
          <strong>Will be pruned</strong>: the keys decide which partitions are read.
        </>
      ) : isPruned(scan) ? (
        <>
          <strong>
            {count(scan.kept ?? 0)} of {counted(scan.total ?? 0, "partition")}
          </strong>{" "}
          kept ({prunedPercent(scan.kept ?? 0, scan.total ?? 0)} pruned)
        </>
      ) : hopOf(scan) !== undefined ? (
        <>
          <strong>{filesOfHop(scan)}</strong> read, by the keys of {hopOf(scan)?.hop?.source}.
        </>
      ) : isRestricted(scan) ? (
        <>
          <strong>
            {scan.files === null
              ? "Files by condition"
              : `${count(scan.files)} of ${counted(scan.total_files ?? scan.files, "file")}`}
          </strong>{" "}
          read: <code className="reason">{scan.reason}</code>, {scan.sentence}
        </>
      ) : (
        <>
          <strong>All partitions</strong> read: <code className="reason">{scan.reason}</code>,{" "}
          {scan.sentence}
          {scan.advice !== null && <Advice code={scan.reason} advice={scan.advice} />}
        </>
      )}
      {read !== null && readInWords(read) !== "" && (
        <span className="muted read">{readInWords(read)}</span>
      )}
    </p>
  );
}

/** What Spark read of the table; null if several scans share the figures. */
function readOf(scan: Scan, scans: Scan[], reads: TableRead[]): TableRead | null {
  if (scans.filter((other) => other.table === scan.table).length !== 1) return null;
  return reads.find((read) => read.table === scan.table) ?? null;
}

/** The index that keys of other large tables have asked; undefined without one. */
function hopOf(scan: Scan): IndexUse | undefined {
  return scan.indexes.find((use) => use.hop != null && use.code === "USED");
}

function filesOfHop(scan: Scan): string {
  const use = hopOf(scan);
  const files = use?.hop?.files ?? null;
  return files === null ? "Files by condition" : `${count(files)} of ${counted(use?.total_files ?? files, "file")}`;
}

function indexInWords(use: IndexUse): string {
  const index = `Key index of ${use.column}${use.hop === null ? "" : ` by ${keysInWords(use.hop)}`}`;
  if (use.files === null) return `${index}, ${use.code}: ${use.sentence}${use.why && `: ${use.why}`}`;
  const unknown = use.unknown ? `, ${count(use.unknown)} of them not in the index` : "";
  const files = `${count(use.files)} of ${counted(use.total_files ?? use.files, "file")} hold the keys${unknown}`;
  return use.code === "USED" ? `${index}: ${files}` : `${index}, ${use.code}: ${use.sentence}; ${files}`;
}

function keysInWords(hop: Hop): string {
  const keys = hop.keys === null ? "keys" : counted(hop.keys, "key");
  return `${keys} of ${hop.source}${hop.seconds === null ? "" : `, read in ${hop.seconds.toFixed(1)} s`}`;
}

function readInWords(read: TableRead): string {
  const found: string[] = [];
  if (read.files !== null) found.push(counted(read.files, "file"));
  if (read.bytes !== null) {
    const all = read.total_bytes === null ? "" : ` of ${bytes(read.total_bytes)}`;
    found.push(`${bytes(read.bytes)}${all}`);
  }
  return found.length === 0 ? "" : `Spark read ${found.join(", ")}.`;
}
